import type { DuckDBConnection } from '@duckdb/node-api';
import type { ValueCount } from '../../../shared/database/schema.ts';
import { query, quoted, quoteName, unquoted } from './duckdb.ts';

const TOP_VALUES = 20;
/**
 * Bytes of a column's texts. DuckDB counts texts in memory, even if they do not fit (it spills numbers): 230 MB of 30
 * kB texts, or 300 MB of different 200-byte texts, needed more than it had.
 */
const COUNTED_AS_TEXTS = 64 << 20;

interface Texts {
  from: string;
  column: string;
  /** Characters of a value that are returned. */
  cut: number;
  /** Bytes of all values. */
  bytes: number;
}

/** The most frequent values of a text column; of equally frequent ones the first, and of many texts any but always the same. */
export async function findTop(connection: DuckDBConnection, texts: Texts): Promise<ValueCount[]> {
  const { from, column, cut, bytes } = texts;
  if (bytes > COUNTED_AS_TEXTS) return findTopByHash(connection, texts);
  const name = quoteName(column);
  // By position: a column of the table goes before an alias of the same name.
  const rows = await query(
    connection,
    `SELECT ${quoted('value', cut)} AS value, length(value) > ${cut} AS is_cut, n FROM (
       SELECT ${name} AS value, count(*) AS n FROM ${from} WHERE ${name} IS NOT NULL
       GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT ${TOP_VALUES})`,
  );
  return rows.map(row => toCount(row, Number(row.n)));
}

/** Among 100 million different values two share a hash in one of 3,000 tables. */
async function findTopByHash(
  connection: DuckDBConnection,
  { from, column, cut }: Texts,
): Promise<ValueCount[]> {
  const name = quoteName(column);
  const counted = await query(
    connection,
    `SELECT hash(${name}) AS h, count(*) AS n FROM ${from} WHERE ${name} IS NOT NULL
     GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT ${TOP_VALUES}`,
  );
  if (counted.length === 0) return [];
  const counts = new Map(counted.map(({ h, n }) => [String(h), Number(n)]));
  const rows = await query(
    connection,
    `SELECT hash(${name}) AS h, ${quoted(`min(left(${name}, ${cut}))`, cut)} AS value,
       max(length(${name})) > ${cut} AS is_cut FROM ${from}
     WHERE hash(${name}) IN (${[...counts.keys()].join(', ')}) GROUP BY 1 ORDER BY 2`,
  );
  return rows
    .map(row => toCount(row, counts.get(String(row.h)) ?? 0))
    .sort((a, b) => b.count - a.count);
}

const toCount = (row: Record<string, unknown>, count: number): ValueCount => ({
  value: unquoted(row.value),
  count,
  ...(row.is_cut === true && { cut: true }),
});
