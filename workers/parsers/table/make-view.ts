import { stat } from 'node:fs/promises';
import type { TableFilter } from '../../../shared/jobs/payloads/table-query.ts';
import {
  countRows,
  openDuckdb,
  query,
  quoteName,
  quoteText,
  readParquet,
  runLong,
} from './duckdb.ts';
import { writeGroups } from './group-rows.ts';
import { parquetStatement } from './parquet-statement.ts';
import type { MadeTable, ViewRequest } from './protocol.ts';

const OPERATORS = { eq: '=', ne: '<>', lt: '<', le: '<=', gt: '>', ge: '>=' } as const;

/** Writes a table's rows that pass every filter, sorted or grouped; equal rows stay in the order of the source. */
export async function makeView(
  request: ViewRequest,
  onProgress: (share: number) => void,
): Promise<MadeTable> {
  const { input, output, sort, filter, groups } = request;
  const connection = await openDuckdb(request, request.columns);
  const described = await query(connection, `DESCRIBE SELECT * FROM ${readParquet(input)}`);
  const types = new Map(described.map(row => [String(row.column_name), String(row.column_type)]));
  const columns = [...types.keys()];
  const { source, row } = numberRows(input, columns);
  const rows = await countRows(connection, readParquet(input));
  const where = filter.map(one => condition(one, types.get(one.column) ?? 'VARCHAR'));
  const from = `${source} ${where.length > 0 ? `WHERE ${where.join(' AND ')}` : ''}`;
  if (groups) return writeGroups(connection, { from, types, groups, output, onProgress });
  // Missing values come last in both directions.
  const order = sort.map(
    ({ column, descending }) => `${quoteName(column)} ${descending ? 'DESC' : 'ASC'} NULLS LAST`,
  );
  const select = `SELECT ${columns.map(quoteName).join(', ')} FROM ${from}
    ORDER BY ${[...order, row].join(', ')}`;
  const bytesPerRow = (await stat(input)).size / Math.max(1, rows);
  const write = parquetStatement(
    { select, output },
    { columns: columns.length, rows, bytesPerRow },
  );
  await runLong(connection, write, onProgress);
  return { rows: await countRows(connection, readParquet(output)) };
}

/** DuckDB's own number of a row is faster, and none where a column is called like it. */
function numberRows(input: string, columns: string[]): { source: string; row: string } {
  const row = 'file_row_number';
  if (!columns.some(name => name.toLowerCase() === row))
    return { source: `read_parquet(${quoteText(input)}, ${row} = true)`, row };
  const own = quoteName('\u0001 row');
  const numbered = `SELECT *, row_number() OVER () AS ${own} FROM ${readParquet(input)}`;
  return { source: `(${numbered})`, row: own };
}

/** A missing value passes only `null`; NaN is neither less nor greater than any number. */
export function condition({ column, op, value }: TableFilter, type: string): string {
  const subject = quoteName(column);
  if (op === 'null') return `${subject} IS ${value === 'true' ? '' : 'NOT '}NULL`;
  const compared = `${subject} ${OPERATORS[op]} CAST(${quoteText(value)} AS ${type})`;
  const isOrder = op !== 'eq' && op !== 'ne';
  return type === 'DOUBLE' && isOrder ? `(${compared} AND NOT isnan(${subject}))` : compared;
}
