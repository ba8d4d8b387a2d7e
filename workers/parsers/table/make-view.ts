import type { DuckDBConnection } from '@duckdb/node-api';
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
import { writeSorted } from './sort-rows.ts';

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
  const conditions = filter.map(one => condition(one, types.get(one.column) ?? 'VARCHAR'));
  const where = conditions.length > 0 ? conditions.join(' AND ') : 'true';
  const from = `${readParquet(input)} WHERE ${where}`;
  if (groups) return writeGroups(connection, { from, types, groups, output, onProgress });
  const groupRows = await readGroupRows(connection, input);
  if (sort.length > 0)
    await writeSorted(connection, { input, where, output, types, sort, groupRows, onProgress });
  else
    await runLong(
      connection,
      parquetStatement(
        { select: `SELECT * FROM ${from}`, output },
        { columns: types.size, groupRows },
      ),
      onProgress,
    );
  return { rows: await countRows(connection, readParquet(output)) };
}

/** The rows of a table's first row group, as many as are read at once. */
async function readGroupRows(connection: DuckDBConnection, input: string): Promise<number> {
  const [first] = await query(
    connection,
    `SELECT row_group_num_rows AS rows FROM parquet_metadata(${quoteText(input)}) LIMIT 1`,
  );
  return Number(first?.rows ?? 0);
}

/** A missing value passes only `null`; NaN equals NaN, and is neither less nor greater than any number. */
function condition({ column, op, value }: TableFilter, type: string): string {
  const subject = quoteName(column);
  if (op === 'null') return `${subject} IS ${value === 'true' ? '' : 'NOT '}NULL`;
  const operand = `CAST(${quoteText(value)} AS ${type})`;
  if (type !== 'DOUBLE') return `${subject} ${OPERATORS[op]} ${operand}`;
  if (op === 'ne') return `${subject} <> ${operand}`;
  if (op !== 'eq') return `(${subject} ${OPERATORS[op]} ${operand} AND NOT isnan(${subject}))`;
  // For `=` DuckDB asks the bloom filters of a file, which tell -0 from 0 and one NaN from another.
  if (value === 'NaN') return `isnan(${subject})`;
  return `(${subject} >= ${operand} AND ${subject} <= ${operand})`;
}
