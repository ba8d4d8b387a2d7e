import { type Database, openDatabase } from '../../../shared/database/connect.ts';

/**
 * How many rows of each of these tables the work reads, from the table and from all of its indexes, over a connection that
 * nothing else uses.
 */
export async function countRowsRead(
  given: { readonly url: string; database(): Database },
  tables: string[],
  work: (database: Database) => Promise<unknown>,
): Promise<Record<string, number>> {
  const { sql } = given.database();
  const read = async () => {
    // Each connection of the pool counts by itself until then.
    await Promise.all(Array.from({ length: 10 }, () => sql`select pg_stat_force_next_flush()`));
    await sql`select pg_stat_clear_snapshot()`;
    const rows = await sql<{ table: string; n: number }[]>`
      select relname as table, (seq_tup_read + (select sum(idx_tup_read)
        from pg_stat_user_indexes i where i.relid = t.relid))::int as n
      from pg_stat_user_tables t where relname = any(${`{${tables}}`}::text[])`;
    return new Map(rows.map(({ table, n }) => [table, n]));
  };
  const before = await read();
  const one = openDatabase(given.url, { max: 1 });
  try {
    await work(one);
  } finally {
    await one.close();
  }
  const after = await read();
  return Object.fromEntries(
    tables.map(table => [table, (after.get(table) ?? 0) - (before.get(table) ?? 0)]),
  );
}
