import { and, asc, eq, inArray, isNull, type SQL, sql } from 'drizzle-orm';
import type { Tx } from '../database/connect.ts';
import type { Notifications } from '../database/notifications.ts';
import { jobs } from '../database/schema.ts';
import { WindlassError } from '../errors/errors.ts';
import { KINDS_THAT_WAIT, KINDS_WITH_OWN_STATE } from './catalog.ts';
import { isOpenById } from './job-conditions.ts';

/** The details of jobs that were cancelled for these. */
export const USER_REMOVED = 'its user was removed.';
export const SESSION_ENDED =
  'its session ended, by DELETE /remotes/(sid), with the access of its user or for want of use.';

/**
 * Cancels these jobs, and returns the ids of those that were open. Jobs that no worker ever claimed end at once;
 * workers end the others. The rows of the jobs' parents are locked before the jobs, as everywhere.
 */
export const cancelJobs = (tx: Tx, which: SQL | undefined, { detail }: { detail?: string } = {}) =>
  cancelOpen(tx, and(which, isOpenById), { detail });

/** Those of a session, a project, a model or an upload, by its index of jobs. */
export const cancelJobsOf = (
  tx: Tx,
  which: SQL | undefined,
  { detail }: { detail?: string } = {},
) => cancelOpen(tx, and(which, isNull(jobs.finished)), { detail });

/** `byUser`: not as a client left. */
export const cancelJob = (tx: Tx, id: string, { byUser }: { byUser: boolean }) =>
  cancelOpen(tx, and(eq(jobs.id, id), isOpenById), { byUser });

async function cancelOpen(
  tx: Tx,
  which: SQL | undefined,
  { byUser = false, detail }: { byUser?: boolean; detail?: string } = {},
): Promise<string[]> {
  // A claimed one may be waiting again, in the batch system of its host. Others may have runAt of a request that they repeat.
  const isClaimed = sql`${jobs.runAt} is not null and ${inArray(jobs.kind, KINDS_WITH_OWN_STATE)}`;
  const isUnclaimed = sql`${jobs.state} = 'queued' and ${jobs.leaseToken} is null and not (${isClaimed})`;
  // Sorted to avoid deadlocks.
  const open = tx
    .select({ id: jobs.id })
    .from(jobs)
    .where(which)
    .orderBy(asc(jobs.id))
    .for('update');
  const rows = await tx
    .update(jobs)
    .set({
      ...(byUser ? { userCancelled: true } : {}),
      cancelRequested: sql`coalesce(${jobs.cancelRequested}, now())`,
      state: sql`case when (${isUnclaimed}) then 'cancelled' else ${jobs.state} end`,
      finished: sql`case when ${isUnclaimed} then now() else ${jobs.finished} end`,
      error: sql`case when ${isUnclaimed} then ${JSON.stringify(new WindlassError('cancelled', { detail }).toRecord())}::jsonb else ${jobs.error} end`,
      notBefore: sql`case when ${inArray(jobs.kind, KINDS_THAT_WAIT)} then now() else ${jobs.notBefore} end`,
      version: sql`${jobs.version} + 1`,
    })
    .where(and(sql`${jobs.id} = any(array(${open}))`, isOpenById))
    .returning({ id: jobs.id });
  return rows.map(row => row.id);
}

/** Notifies the workers of cancelled jobs, and the clients that wait for them: some jobs have ended already. */
export function publishCancelled(
  { notifications }: { notifications: Pick<Notifications, 'publish'> },
  ids: string[],
): void {
  for (const id of ids) {
    notifications.publish('cancel', id);
    notifications.publish('job', id);
  }
}
