import { and, asc, eq, inArray, isNull, type SQL, sql } from 'drizzle-orm';
import type { Tx } from '../database/connect.ts';
import type { Notifications } from '../database/notifications.ts';
import { jobs } from '../database/schema.ts';
import type { ErrorRecord } from '../errors.ts';

export const CANCELLED: ErrorRecord = { code: 'cancelled', detail: 'Cancelled.' };

/**
 * Asks for the end of the open jobs that `which` picks, and returns their ids. What no worker ever took ends here and
 * now; the rest is ended by its worker, who has something to stop on the host. May be called with what the jobs work for
 * held: whoever ends a job holds that before the job's row, too.
 */
export async function requestCancel(tx: Tx, which: SQL | undefined): Promise<string[]> {
  const never = sql`${jobs.state} = 'queued'`;
  // In one order for all, so that two who lock many never wait for each other.
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
      state: sql`case when ${never} then 'cancelled' else ${jobs.state} end`,
      finished: sql`case when ${never} then now() else ${jobs.finished} end`,
      error: sql`case when ${never} then ${JSON.stringify(CANCELLED)}::jsonb else ${jobs.error} end`,
      version: sql`${jobs.version} + 1`,
    })
    .where(and(inArray(jobs.id, open), isNull(jobs.finished)))
    .returning({ id: jobs.id });
  return rows.map(row => row.id);
}

export const cancelJob = (tx: Tx, id: string) => requestCancel(tx, eq(jobs.id, id));

/** Tells of jobs that were asked to end: their workers, and whoever follows them, for some have ended with that. */
export function publishCancelled(
  { notifications }: { notifications: Pick<Notifications, 'publish'> },
  ids: string[],
): void {
  for (const id of ids) {
    notifications.publish('cancel', id);
    notifications.publish('job', id);
  }
}
