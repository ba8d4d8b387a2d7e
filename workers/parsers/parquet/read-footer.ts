import type { DuckDBConnection } from '@duckdb/node-api';
import { query, quoted, quoteText, readParquet, unquoted } from '../table/duckdb.ts';
import { TableError } from '../table/protocol.ts';
import type { NanosecondColumn } from './check-nanoseconds.ts';
import { refuseDamaged } from './refuse-damaged.ts';

const MAX_DECIMAL_DIGITS = 38;

export interface Footer {
  rows: number;
  columns: { name: string; type: string }[];
  /** The columns' names as in the file; DuckDB makes them unique. */
  names: string[];
  /** The columns whose values DuckDB cuts to microseconds. */
  nanoseconds: NanosecondColumn[];
}

/** What the file says of itself. Throws TableError if it is no Parquet file. */
export async function readFooter(connection: DuckDBConnection, input: string): Promise<Footer> {
  const from = quoteText(input);
  const [meta] = await refuseDamaged(
    query(connection, `SELECT num_rows FROM parquet_file_metadata(${from})`),
    input,
  );
  const described = await refuseDamaged(
    query(
      connection,
      `SELECT ${quoted('column_name')} AS name, column_type AS type
        FROM (DESCRIBE SELECT * FROM ${readParquet(input)})`,
    ),
    input,
  );
  const columns = described.map(({ name, type }) => ({ name: unquoted(name), type: String(type) }));
  const schema = await refuseDamaged(
    query(
      connection,
      `SELECT ${quoted('name')} AS name, type, num_children AS children, logical_type AS logical, precision FROM parquet_schema(${from})`,
    ),
    input,
  );
  refuseLongDecimals(schema);
  refuseSameNames(schema);
  const top = topLevel(schema);
  const leaves = schema.filter(({ children }) => Number(children ?? 0) === 0);
  const isCut = ({ type, logical }: Record<string, unknown>) =>
    type === 'INT96' ||
    /^TimestampType\(isAdjustedToUTC=1.*NANOS=NanoSeconds/.test(String(logical));
  return {
    rows: Number(meta?.num_rows),
    columns,
    names: top.length === columns.length ? top.map(({ name }) => unquoted(name)) : [],
    nanoseconds: top
      .filter(isCut)
      .map(column => ({ name: unquoted(column.name), leaf: leaves.indexOf(column) })),
  };
}

/** DuckDB reads decimals of more digits as doubles, and as wrong ones. */
function refuseLongDecimals(schema: Record<string, unknown>[]): void {
  const long = schema.find(({ precision }) => Number(precision ?? 0) > MAX_DECIMAL_DIGITS);
  if (long)
    throw new TableError({
      column: unquoted(long.name).slice(0, 1_000),
      reason: `its decimals have ${long.precision} digits, and at most ${MAX_DECIMAL_DIGITS} are read`,
      hint: 'Leave the column out, or write its values as texts.',
    });
}

/** DuckDB renames fields of a record that differ only by ASCII case, or not at all. */
function refuseSameNames(schema: Record<string, unknown>[]): void {
  let column = '';
  /** The open nodes above: how many children are left of each, and the names seen. */
  const above: { left: number; names: Set<string> }[] = [];
  for (const { name: read, children } of schema) {
    const name = unquoted(read);
    while (above.at(-1)?.left === 0) above.pop();
    const parent = above.at(-1);
    // The columns are the root's children, and get other names where they have the same.
    if (above.length === 1) column = name;
    else if (parent) {
      const key = name.replace(/[A-Z]/g, letter => letter.toLowerCase());
      if (parent.names.has(key)) throw sameNames(column, name);
      parent.names.add(key);
    }
    if (parent) parent.left--;
    if (Number(children ?? 0) > 0) above.push({ left: Number(children), names: new Set() });
  }
}

const sameNames = (column: string, field: string) =>
  new TableError({
    column: column.slice(0, 1_000),
    reason: `records in it have two fields ${JSON.stringify(field.slice(0, 100))}, if case is disregarded`,
    hint: 'Rename one of the fields, or write the records as texts.',
  });

/** The children of the root in a schema that is a list of nodes, each before its children. */
function topLevel(schema: Record<string, unknown>[]): Record<string, unknown>[] {
  const found: Record<string, unknown>[] = [];
  for (let i = 1; i < schema.length; ) {
    found.push(schema[i] as Record<string, unknown>);
    for (let left = 1; left > 0 && i < schema.length; i++)
      left += Number(schema[i]?.children ?? 0) - 1;
  }
  return found;
}
