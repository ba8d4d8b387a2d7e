import { sql } from 'drizzle-orm';
import type { Tx } from '../../../shared/database/connect.ts';
import { views } from '../../../shared/database/schema.ts';

/** The views of a table may together be so many times as large as the table, or so many bytes. */
const VIEWS_PER_TABLE = 10;
const VIEW_BYTES_OF_SMALL = 16 << 20;

/** Holds, for the rest of the transaction, whether other views of this table become visible. */
export async function lockViews(tx: Tx, source: string): Promise<void> {
  await tx.execute(sql`select pg_advisory_xact_lock(hashtextextended(${`views ${source}`}, 0))`);
}

/**
 * Lets go of the views of a table that were used least lately, until all of them fit beside the new one, which stays
 * however large it is. Anyone who may read a table may ask for views of it, so that only this bounds what they take.
 * The objects are the caller's to loosen. Call lockViews() before.
 */
export async function evictViews(
  tx: Tx,
  { source, kept, tableSize }: { source: string; kept: string; tableSize: number },
): Promise<string[]> {
  const limit = Math.max(tableSize * VIEWS_PER_TABLE, VIEW_BYTES_OF_SMALL);
  // Rows that somebody holds are in use just now: who waits for none cannot be waited for in a circle.
  const removed = await tx.execute<{ object: string }>(sql`
    delete from ${views} where id in (
      select id from ${views} where id in (
        select id from (
          select id, sum(size) over (order by id <> ${kept}, used desc, id) as so_far
          from ${views} where source = ${source} and object is not null) ranked
        where so_far > ${limit} and id <> ${kept})
      for update skip locked)
    returning object`);
  return removed.map(({ object }) => object);
}
