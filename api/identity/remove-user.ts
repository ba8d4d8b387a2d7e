import { and, asc, eq, inArray, isNull, notInArray, or, sql } from 'drizzle-orm';
import { anyOf } from '../../shared/database/any-of.ts';
import type { Tx } from '../../shared/database/connect.ts';
import {
  hosts,
  idempotencyKeys,
  jobs,
  members,
  projects,
  users,
} from '../../shared/database/schema.ts';
import { cancelJobs, cancelJobsOf, USER_REMOVED } from '../../shared/jobs/cancel.ts';
import { isOpenByOwner } from '../../shared/jobs/job-conditions.ts';
import type { WriteAudit } from './audit.ts';
import { disownJobs, nobodyAfter } from './disown-jobs.ts';
import { disownUploads } from './disown-uploads.ts';
import { type EndedAccess, endAccess } from './end-access.ts';

/**
 * Removes a user: ends the sessions and cancels the open jobs (both are returned), and gives what remains an owner that
 * nobody is, so that a later user of the same name inherits nothing (decision 17). Projects that the user leaves empty, or
 * leaves to readers as their last administrator, are the heir's, whose row must be locked; where there is none, the
 * empty ones are deleted. Lock order everywhere: users, hosts, sessions, projects, uploads, jobs.
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
  const others = await cancelJobsOf(tx, isAmong(jobs.project, emptied));
  // Ended sessions keep their owner: the sealed credential is bound to that name, and clean-up on the host needs it.
  await disownJobs(tx, { username, nobody });
  await tx.delete(idempotencyKeys).where(eq(idempotencyKeys.owner, username));
  return { jobs: [...ended.jobs, ...own, ...others], sessions: ended.sessions };
}

/**
 * Removes the user's memberships. A project without an administrator makes its writers administrators. One without
 * members is given to the heir, and so is one of readers only that the user administered. Where there is no heir, a
 * project of readers only stays as it is, and one without members is deleted and returned here.
 */
async function leaveProjects(
  tx: Tx,
  { username, heir, audit }: { username: string; heir: string | undefined; audit: WriteAudit },
): Promise<string[]> {
  const mine = tx
    .select({ pid: members.project })
    .from(members)
    .where(eq(members.username, username));
  await tx
    .select({ pid: projects.pid })
    .from(projects)
    .where(inArray(projects.pid, mine))
    .orderBy(asc(projects.pid))
    .for('update');
  const left = await tx
    .delete(members)
    .where(eq(members.username, username))
    .returning({ pid: members.project, role: members.role });
  const pids = left.map(row => row.pid);
  if (pids.length === 0) return [];
  await audit(tx, 'project.acl', pids);
  await tx
    .update(projects)
    .set({ version: sql`${projects.version} + 1`, updated: sql`now()` })
    .where(isAmong(projects.pid, pids));
  const ruled = tx
    .select({ pid: members.project })
    .from(members)
    .where(and(isAmong(members.project, pids), eq(members.role, 'administrator')));
  await tx
    .update(members)
    .set({ role: 'administrator' })
    .where(
      and(
        isAmong(members.project, pids),
        eq(members.role, 'writer'),
        notInArray(members.project, ruled),
      ),
    );
  const areOpen = and(isAmong(projects.pid, pids), isNull(projects.deleted));
  const peopled = tx
    .select({ pid: members.project })
    .from(members)
    .where(isAmong(members.project, pids));
  const areEmpty = notInArray(projects.pid, peopled);
  if (heir !== undefined) {
    const governed = left.filter(row => row.role === 'administrator').map(row => row.pid);
    const areLost = and(isAmong(projects.pid, governed), notInArray(projects.pid, ruled));
    await tx.execute(sql`
      insert into ${members} (project, username, role)
      select pid, ${heir}, 'administrator' from ${projects}
      where ${and(areOpen, or(areEmpty, areLost))}
      on conflict (project, username) do update set role = excluded.role`);
    return [];
  }
  const emptied = await tx
    .update(projects)
    .set({ deleted: sql`now()` })
    .where(and(areOpen, areEmpty))
    .returning({ pid: projects.pid });
  const deleted = emptied.map(row => row.pid);
  await audit(tx, 'project.delete', deleted);
  return deleted;
}

function isAmong(
  column: typeof members.project | typeof projects.pid | typeof jobs.project,
  pids: string[],
) {
  return sql`${column} = ${anyOf(pids)}`;
}
