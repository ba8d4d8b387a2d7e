import { type SQL, sql } from 'drizzle-orm';
import type { PgTable } from 'drizzle-orm/pg-core';
import type { Tx } from './connect.ts';

/** Whether a row matches. With `lock`, the rows that match are locked until the transaction ends. */
export async function rowExists(
  tx: Tx,
  table: PgTable,
  where: SQL | undefined,
  lock?: 'update' | 'share',
): Promise<boolean> {
  const query = tx.select({ one: sql`1` }).from(table).where(where).$dynamic();
  const rows = await (lock ? query.for(lock) : query.limit(1));
  return rows.length > 0;
}
