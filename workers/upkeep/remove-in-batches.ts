import { type SQL, sql } from 'drizzle-orm';
import type { PgTable } from 'drizzle-orm/pg-core';
import { sleep } from '../../shared/process/abort.ts';
import type { WorkerContext } from '../context.ts';

/** Rows of one statement of removeRows(). */
const ROWS = 1_000;

/** Pause after each batch, as a multiple of its duration, for other users of the database. */
export const REST = 3;

/** Removes batches of this size until one is not full, with pauses in between. */
export async function removeInBatches(
  stopping: AbortSignal,
  size: number,
  removeBatch: () => Promise<number>,
): Promise<void> {
  while (!stopping.aborted) {
    const began = performance.now();
    if ((await removeBatch()) < size) return;
    await sleep(stopping, REST * (performance.now() - began));
  }
}

/** Removes these rows except locked ones, in batches: after an outage one statement would exceed its time limit. */
export async function removeRows(
  { database: { db }, stopping }: Pick<WorkerContext, 'database' | 'stopping'>,
  table: PgTable,
  which: SQL,
): Promise<void> {
  await removeInBatches(stopping, ROWS, async () => {
    const gone = await db.execute(sql`
      delete from ${table} where ctid = any(array(
        select ctid from ${table} where ${which} limit ${ROWS} for update skip locked))
      returning 1`);
    return gone.length;
  });
}
