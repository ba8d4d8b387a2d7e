import { and, eq, isNull, sql } from 'drizzle-orm';
import type { Tx } from '../shared/database/connect.ts';
import { idempotencyKeys, jobs, sessions, users } from '../shared/database/schema.ts';
import { newId } from '../shared/ids.ts';
import { requestCancel } from '../shared/jobs/cancel.ts';

/**
 * Removes a user: the sessions end, the open jobs are cancelled (both are returned), and what is left of them belongs to
 * nobody, so that a later user of the same name inherits nothing.
 */
export async function removeUser(
  tx: Tx,
  username: string,
): Promise<{ jobs: string[]; sessions: string[] }> {
  await tx.delete(users).where(eq(users.username, username));
  const ended = await tx
    .update(sessions)
    .set({ ended: sql`now()` })
    .where(and(eq(sessions.owner, username), isNull(sessions.ended)))
    .returning({ sid: sessions.sid });
  const cancelled = await requestCancel(tx, eq(jobs.owner, username));
  // Ended sessions keep their owner: the sealed credential, needed to clean up on the host, opens for that name alone.
  await tx
    .update(jobs)
    .set({ owner: `${username} (removed ${newId()})` })
    .where(eq(jobs.owner, username));
  await tx.delete(idempotencyKeys).where(eq(idempotencyKeys.owner, username));
  return { jobs: cancelled, sessions: ended.map(row => row.sid) };
}
