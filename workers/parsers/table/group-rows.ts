import type { DuckDBConnection } from '@duckdb/node-api';
import { MAX_GROUPS, type TableGroups } from '../../../shared/jobs/payloads/table-query.ts';
import { countRows, quoteName, readParquet, runLong } from './duckdb.ts';
import { parquetStatement } from './parquet-statement.ts';
import { type MadeTable, TableError } from './protocol.ts';

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
 * Writes a row for each group, in the order of its values, missing ones last. The columns are named by their position,
 * because an aggregate may be called like a column.
 */
export async function writeGroups(
  connection: DuckDBConnection,
  { from, types, groups: { by, aggregates }, output, onProgress }: Grouping,
): Promise<MadeTable> {
  const typeOf = (column: string) => types.get(column) ?? 'VARCHAR';
  const made = [
    ...by.map(quoteName),
    ...aggregates.map(({ op, column }) =>
      column === undefined ? 'count(*)' : aggregate(op, column, typeOf(column)),
    ),
  ];
  // By position: a name could be that of a column as well as of an aggregate.
  const positions = by.map((_, i) => i + 1);
  const order = positions.map(position => `${position} ASC NULLS LAST`);
  const select = `SELECT ${made.map((value, i) => `${value} AS "${i}"`).join(', ')} FROM ${from}
    GROUP BY ${positions.join(', ')} ORDER BY ${order.join(', ')} LIMIT ${MAX_GROUPS + 1}`;
  await runLong(
    connection,
    parquetStatement(
      { select, output },
      { columns: made.length, rows: MAX_GROUPS, bytesPerRow: 0 },
    ),
    onProgress,
  );
  const rows = await countRows(connection, readParquet(output));
  if (rows > MAX_GROUPS)
    throw new TableError({
      reason: `by: there are more than ${MAX_GROUPS} groups`,
      hint: 'Group by columns with fewer values, or filter the rows.',
    });
  return { rows };
}

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
      return `avg(${value})`;
    case 'min':
    case 'max':
      // DuckDB takes NaN for the greatest number.
      return `${op}(${value})${type === 'DOUBLE' ? ` FILTER (NOT isnan(${value}))` : ''}`;
  }
}
