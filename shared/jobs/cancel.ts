import { and, eq, inArray, isNull, type SQL, sql } from 'drizzle-orm';
import type { Tx } from '../database/connect.ts';
import { jobs } from '../database/schema.ts';
import type { ErrorRecord } from '../errors.ts';

export const CANCELLED: ErrorRecord = { code: 'cancelled', detail: 'Cancelled.' };

/**
 * Asks for the end of the open jobs that `which` picks, and returns their ids. What no worker ever took ends here and
 * now; the rest is ended by its worker, who has something to stop on the host.
 */
export async function requestCancel(tx: Tx, which: SQL | undefined): Promise<string[]> {
  const never = sql`${jobs.state} = 'queued'`;
  const rows = await tx
    .update(jobs)
    .set({
      cancelRequested: sql`coalesce(${jobs.cancelRequested}, now())`,
      state: sql`case when ${never} then 'cancelled' else ${jobs.state} end`,
      finished: sql`case when ${never} then now() else ${jobs.finished} end`,
      error: sql`case when ${never} then ${JSON.stringify(CANCELLED)}::jsonb else ${jobs.error} end`,
      version: sql`${jobs.version} + 1`,
    })
    .where(and(which, isNull(jobs.finished)))
    .returning({ id: jobs.id });
  return rows.map(row => row.id);
}

export const cancelJob = (tx: Tx, id: string) => requestCancel(tx, eq(jobs.id, id));

/**
 * requestCancel() for a transaction that holds what the jobs work for. Who ends a job holds its row and then waits for
 * that, to promote; so a row that is locked is left out instead of waited for, or both would wait for ever. What is left
 * out is cancelled by upkeep, unless it was ending: then its promotion finds its target gone, and it fails.
 */
export async function requestCancelOfFree(tx: Tx, which: SQL | undefined): Promise<string[]> {
  const free = tx
    .select({ id: jobs.id })
    .from(jobs)
    .where(and(which, isNull(jobs.finished)))
    .for('update', { skipLocked: true });
  return requestCancel(tx, inArray(jobs.id, free));
}
