import { sql } from 'drizzle-orm';
import type { Tx } from '../../../shared/database/connect.ts';
import { views } from '../../../shared/database/schema.ts';

/** Limit of all views of a table: this many times its size, or MIN_VIEW_BYTES if that is more. */
const VIEWS_PER_TABLE = 10;
const MIN_VIEW_BYTES = 16 << 20;

/** Serializes the transactions that make views of this table visible, by an advisory lock. */
export async function lockViews(tx: Tx, source: string): Promise<void> {
  await tx.execute(sql`select pg_advisory_xact_lock(hashtextextended(${`views ${source}`}, 0))`);
}

/**
 * Evicts a table's least recently used views until the rest and the new one, which always stays, fit the limit: anybody
 * who reads a table may create views. Returns the objects to schedule for deletion. Call lockViews() first.
 */
export async function evictViews(
  tx: Tx,
  { source, kept, tableSize }: { source: string; kept: string; tableSize: number },
): Promise<string[]> {
  const limit = Math.max(tableSize * VIEWS_PER_TABLE, MIN_VIEW_BYTES);
  // Locked rows are in use. Skipping them avoids deadlocks.
  const removed = await tx.execute<{ object: string }>(sql`
    delete from ${views} where id = any(array(
      select id from ${views} where id in (
        select id from (
          select id, sum(size) over (order by id <> ${kept}, used desc, id) as so_far
          from ${views} where source = ${source} and object is not null) ranked
        where so_far > ${limit} and id <> ${kept})
      for update skip locked))
    returning object`);
  return removed.map(({ object }) => object);
}
