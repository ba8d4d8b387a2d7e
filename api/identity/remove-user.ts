import { and, asc, eq, inArray, isNull, notInArray, or, sql } from 'drizzle-orm';
import type { Tx } from '../../shared/database/connect.ts';
import {
  idempotencyKeys,
  jobs,
  logins,
  members,
  projects,
  sessions,
  tokens,
  uploads,
  users,
} from '../../shared/database/schema.ts';
import { newId } from '../../shared/ids.ts';
import { requestCancel } from '../../shared/jobs/cancel.ts';

/**
 * Removes a user: the sessions end, the open jobs are cancelled (both are returned), the memberships go, and what is left
 * of them belongs to nobody, so that a later user of the same name inherits nothing. Locks are taken in this order
 * everywhere: users, sessions, projects, uploads, jobs.
 */
export async function removeUser(
  tx: Tx,
  username: string,
): Promise<{ jobs: string[]; sessions: string[] }> {
  await tx.delete(users).where(eq(users.username, username));
  await tx.delete(logins).where(eq(logins.username, username));
  await tx.delete(tokens).where(eq(tokens.username, username));
  const ended = await tx
    .update(sessions)
    .set({ ended: sql`now()` })
    .where(and(eq(sessions.owner, username), isNull(sessions.ended)))
    .returning({ sid: sessions.sid });
  const emptied = await leaveProjects(tx, username);
  const nobody = `${username} (removed ${newId()})`;
  // An upload may have too many parts for one statement: it ends as an idle one, which upkeep sees to.
  await tx
    .update(uploads)
    .set({ owner: nobody, accessed: sql`to_timestamp(0)` })
    .where(eq(uploads.owner, username));
  const cancelled = await requestCancel(
    tx,
    or(eq(jobs.owner, username), isAmong(jobs.project, emptied)),
  );
  // Ended sessions keep their owner: the sealed credential, needed to clean up on the host, opens for that name alone.
  await tx.update(jobs).set({ owner: nobody }).where(eq(jobs.owner, username));
  await tx.delete(idempotencyKeys).where(eq(idempotencyKeys.owner, username));
  return { jobs: cancelled, sessions: ended.map(row => row.sid) };
}

/**
 * Where the last administrator goes, the writers become administrators; where nobody is left, the project is deleted.
 * Returns those that were. Readers alone may go on reading: what they were not trusted with before,
 * nobody gives them now.
 */
async function leaveProjects(tx: Tx, username: string): Promise<string[]> {
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
    .returning({ pid: members.project });
  const pids = left.map(row => row.pid);
  if (pids.length === 0) return [];
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
  const peopled = tx
    .select({ pid: members.project })
    .from(members)
    .where(isAmong(members.project, pids));
  const emptied = await tx
    .update(projects)
    .set({ deleted: sql`now()` })
    .where(
      and(isAmong(projects.pid, pids), isNull(projects.deleted), notInArray(projects.pid, peopled)),
    )
    .returning({ pid: projects.pid });
  return emptied.map(row => row.pid);
}

/** One parameter, however many they are; an SQL statement takes 65,535. */
function isAmong(
  column: typeof members.project | typeof projects.pid | typeof jobs.project,
  pids: string[],
) {
  return sql`${column} = any(${sql.param(`{${pids.join(',')}}`)}::text[])`;
}
