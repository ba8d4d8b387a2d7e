import type { DuckDBConnection } from '@duckdb/node-api';
import { MAX_GROUPS, type TableGroups } from '../../../shared/jobs/payloads/table-query.ts';
import { countRows, query, quoteName, readParquet, runLong } from './duckdb.ts';
import { parquetStatement } from './parquet-statement.ts';
import { type MadeTable, TableError } from './protocol.ts';
import { orderOf } from './sort-rows.ts';

/** Limit of groups by an estimate, which is a fifth off at most. */
const SURELY_TOO_MANY = 3 * MAX_GROUPS;

interface Grouping {
  /** A relation, with its condition. */
  from: string;
  /** DuckDB's, by column. */
  types: Map<string, string>;
  groups: TableGroups;
  output: string;
  onProgress(share: number): void;
}

/**
 * Writes a row for each group, in order of its values, missing ones last. Columns are named by position, because an
 * aggregate may have a column's name.
 */
export async function writeGroups(
  connection: DuckDBConnection,
  grouping: Grouping,
): Promise<MadeTable> {
  const { from, types, output, onProgress } = grouping;
  const { by, aggregates } = grouping.groups;
  await refuseManyGroups(connection, grouping);
  const typeOf = (column: string) => types.get(column) ?? 'VARCHAR';
  const made = [
    ...by.map(quoteName),
    ...aggregates.map(({ op, column }) =>
      column === undefined ? 'count(*)' : aggregate(op, column, typeOf(column)),
    ),
  ];
  // By position: a name could be that of a column as well as of an aggregate.
  const positions = by.map((_, i) => i + 1);
  const order = by.map((column, i) => `${orderOf(`"${i}"`, typeOf(column))} ASC NULLS LAST`);
  const sorted = order.length > 0 ? `ORDER BY ${order.join(', ')}` : '';
  const select = `SELECT * FROM (SELECT ${made.map((value, i) => `${value} AS "${i}"`).join(', ')} FROM ${from}
    GROUP BY ${positions.join(', ')}) ${sorted} LIMIT ${MAX_GROUPS + 1}`;
  await runLong(
    connection,
    parquetStatement(
      { select, output },
      { columns: made.length, rows: MAX_GROUPS, bytesPerRow: 0 },
    ),
    onProgress,
  );
  const rows = await countRows(connection, readParquet(output));
  if (rows > MAX_GROUPS) throw tooManyGroups();
  return { rows };
}

/** DuckDB holds the texts of all groups in memory: millions of them are refused before. */
async function refuseManyGroups(
  connection: DuckDBConnection,
  { from, groups: { by } }: Grouping,
): Promise<void> {
  if (by.length === 0) return;
  const [found] = await query(
    connection,
    `SELECT approx_count_distinct(hash(${by.map(quoteName).join(', ')})) AS groups FROM ${from}`,
  );
  if (Number(found?.groups) > SURELY_TOO_MANY) throw tooManyGroups();
}

const tooManyGroups = () =>
  new TableError({
    reason: `by: there are more than ${MAX_GROUPS} groups`,
    hint: 'Group by columns with fewer values, or filter the rows.',
  });

function aggregate(
  op: TableGroups['aggregates'][number]['op'],
  column: string,
  type: string,
): string {
  const value = quoteName(column);
  switch (op) {
    case 'count':
      return `count(${value})`;
    case 'sum':
      // Exact, with any number of digits, which no type of Parquet holds.
      return type === 'DOUBLE' ? `sum(${value})` : `CAST(sum(${value}) AS VARCHAR)`;
    case 'mean':
      return type === 'DOUBLE' ? meanOfDoubles(value) : `avg(${value})`;
    case 'min':
    case 'max':
      // DuckDB takes NaN for the greatest number.
      return `${op}(${value})${type === 'DOUBLE' ? ` FILTER (NOT isnan(${value}))` : ''}`;
  }
}

/** The mean of finite numbers is finite, though their sum may not be: a power of two changes none of their digits. */
const meanOfDoubles = (value: string) =>
  `CASE WHEN isfinite(avg(${value})) THEN avg(${value}) ELSE avg(${value} * 2.0 ** -64) * 2.0 ** 64 END`;
