import { stat } from 'node:fs/promises';
import type { TableFilter } from '../../../shared/jobs/catalog.ts';
import { name, openDuckdb, query, runLong, text } from './duckdb.ts';
import type { MadeTable, TableRequest } from './protocol.ts';
import { writeParquet } from './write-parquet.ts';

const OPERATORS = { eq: '=', ne: '<>', lt: '<', le: '<=', gt: '>', ge: '>=' } as const;

/** A table's rows that pass every filter, sorted; equal ones in the order of the source. */
export async function makeView(
  request: Extract<TableRequest, { kind: 'view' }>,
  onProgress: (share: number) => void,
): Promise<MadeTable> {
  const { input, output, sort, filter } = request;
  const connection = await openDuckdb(request);
  const source = `read_parquet(${text(input)}, file_row_number = true)`;
  const described = await query(connection, `DESCRIBE SELECT * FROM read_parquet(${text(input)})`);
  const types = new Map(described.map(row => [String(row.column_name), String(row.column_type)]));
  const columns = [...types.keys()];
  const [size] = await query(connection, `SELECT count(*) AS n FROM read_parquet(${text(input)})`);
  const where = filter.map(one => condition(one, types.get(one.column) ?? 'VARCHAR'));
  // Missing values come last, whichever way.
  const order = sort.map(
    ({ column, descending }) => `${name(column)} ${descending ? 'DESC' : 'ASC'} NULLS LAST`,
  );
  const select = `SELECT ${columns.map(name).join(', ')} FROM ${source}
    ${where.length > 0 ? `WHERE ${where.join(' AND ')}` : ''}
    ORDER BY ${[...order, 'file_row_number'].join(', ')}`;
  const write = writeParquet({
    select,
    output,
    columns: columns.length,
    bytesPerRow: (await stat(input)).size / Math.max(1, Number(size?.n)),
  });
  await runLong(connection, write, onProgress);
  const [made] = await query(connection, `SELECT count(*) AS n FROM read_parquet(${text(output)})`);
  return { rows: Number(made?.n) };
}

/** A missing value passes `null` alone; NaN is neither less nor greater than anything. */
export function condition({ column, op, value }: TableFilter, type: string): string {
  const subject = name(column);
  if (op === 'null') return `${subject} IS ${value === 'true' ? '' : 'NOT '}NULL`;
  const compared = `${subject} ${OPERATORS[op]} CAST(${text(value)} AS ${type})`;
  const isOrder = op !== 'eq' && op !== 'ne';
  return type === 'DOUBLE' && isOrder ? `(${compared} AND NOT isnan(${subject}))` : compared;
}
