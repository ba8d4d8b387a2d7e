import { and, asc, eq, inArray, isNull, type SQL, sql } from 'drizzle-orm';
import type { Tx } from '../database/connect.ts';
import type { Notifications } from '../database/notifications.ts';
import { jobs } from '../database/schema.ts';
import type { ErrorRecord } from '../errors.ts';

export const CANCELLED: ErrorRecord = { code: 'cancelled', detail: 'Cancelled.' };

/**
 * Cancels the open jobs that `which` selects, and returns their ids. Jobs that no worker ever claimed end at once; the others
 * are ended by their workers. The rows of the jobs' parents are locked before those of the jobs, here as everywhere.
 */
export async function cancelJobs(tx: Tx, which: SQL | undefined): Promise<string[]> {
  const isUnclaimed = sql`${jobs.state} = 'queued'`;
  // Sorted to avoid deadlocks.
  const open = tx
    .select({ id: jobs.id })
    .from(jobs)
    .where(and(which, isNull(jobs.finished)))
    .orderBy(asc(jobs.id))
    .for('update');
  const rows = await tx
    .update(jobs)
    .set({
      cancelRequested: sql`coalesce(${jobs.cancelRequested}, now())`,
      state: sql`case when ${isUnclaimed} then 'cancelled' else ${jobs.state} end`,
      finished: sql`case when ${isUnclaimed} then now() else ${jobs.finished} end`,
      error: sql`case when ${isUnclaimed} then ${JSON.stringify(CANCELLED)}::jsonb else ${jobs.error} end`,
      version: sql`${jobs.version} + 1`,
    })
    .where(and(inArray(jobs.id, open), isNull(jobs.finished)))
    .returning({ id: jobs.id });
  return rows.map(row => row.id);
}

export const cancelJob = (tx: Tx, id: string) => cancelJobs(tx, eq(jobs.id, id));

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
