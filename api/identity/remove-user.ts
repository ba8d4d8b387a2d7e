import { and, eq, sql } from 'drizzle-orm';
import { anyOf } from '../../shared/database/any-of.ts';
import type { Tx } from '../../shared/database/connect.ts';
import { hosts, idempotencyKeys, jobs, users } from '../../shared/database/schema.ts';
import { cancelJobs, cancelJobsOf, USER_REMOVED } from '../../shared/jobs/cancel.ts';
import { isOpenByOwner } from '../../shared/jobs/job-conditions.ts';
import type { WriteAudit } from './audit.ts';
import { disownJobs, nobodyAfter } from './disown-jobs.ts';
import { disownUploads } from './disown-uploads.ts';
import { type EndedAccess, endAccess } from './end-access.ts';
import { leaveProjects } from './leave-projects.ts';

/**
 * Removes a user: ends the sessions and cancels the open jobs (both are returned), and gives what remains an owner that
 * nobody is, so that a later user of the same name inherits nothing (decision 17). leaveProjects() says which projects are
 * the heir's, whose row must be locked. Lock order everywhere: users, hosts, sessions, projects, uploads, jobs.
 */
export async function removeUser(
  tx: Tx,
  username: string,
  audit: WriteAudit,
  { nobody = nobodyAfter(username), heir }: { nobody?: string; heir?: string } = {},
): Promise<EndedAccess> {
  await tx.delete(users).where(eq(users.username, username));
  const listed = await tx
    .update(hosts)
    .set({
      users: sql`array_remove(${hosts.users}, ${username})`,
      version: sql`${hosts.version} + 1`,
    })
    .where(sql`${username} = any(${hosts.users})`)
    .returning({ name: hosts.name });
  const names = listed.map(({ name }) => name);
  await audit(tx, 'host.update', names);
  const ended = await endAccess(tx, username, audit);
  const emptied = await leaveProjects(tx, { username, heir, audit });
  await disownUploads(tx, { username, nobody });
  // Parses too, into projects of others: what a parse makes is its user's, who is no writer any more.
  const own = await cancelJobs(tx, and(eq(jobs.owner, username), isOpenByOwner), {
    detail: USER_REMOVED,
  });
  const others = await cancelJobsOf(tx, sql`${jobs.project} = ${anyOf(emptied)}`);
  // Ended sessions keep their owner: the sealed credential is bound to that name, and clean-up on the host needs it.
  await disownJobs(tx, { username, nobody });
  await tx.delete(idempotencyKeys).where(eq(idempotencyKeys.owner, username));
  return { jobs: [...ended.jobs, ...own, ...others], sessions: ended.sessions };
}
