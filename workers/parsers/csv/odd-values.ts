import type { DuckDBConnection } from '@duckdb/node-api';
import type { OddValues } from '../../../shared/database/schema.ts';
import { query, quoteName, quoteText, readParquet } from '../table/duckdb.ts';
import { type SqlType, TYPE_OF_SQL } from '../table/sql-types.ts';
import { countByTypes, holds, type Notation, typedText, typesIn } from './column-types.ts';
import type { GuessedColumn } from './guess-columns.ts';

/** The sample that is read first: most text columns are plainly text, and are not read further. */
const SAMPLE = { rows: 10_000, cells: 500_000, least: 1_000 };
/** The share of values from which on a column seems to be of a type. */
const NEARLY_ALL = 0.9;
const MAX_CHARACTERS = 60;

interface Table {
  /** The Parquet file. */
  table: string;
  columns: GuessedColumn[];
  notation: Notation;
}

/**
 * For each column that is text only because of a few values, these values, by the column's index. A column that was asked to be
 * text is skipped.
 */
export async function findOddValues(
  connection: DuckDBConnection,
  { table, columns, notation }: Table,
): Promise<Map<number, OddValues>> {
  const texts = columns.flatMap(({ type, asked }, i) =>
    type === 'VARCHAR' && asked === undefined ? [i] : [],
  );
  const file = readParquet(table);
  const rows = Math.max(
    SAMPLE.least,
    Math.min(SAMPLE.rows, Math.floor(SAMPLE.cells / columns.length)),
  );
  const named = texts.map(i => `${quoteName(columns[i]?.name ?? '')} AS c${i}`).join(', ');
  const relation = `(SELECT ${named} FROM ${file} LIMIT ${rows})`;
  // The reader preserves the order of the file, so row_number() counts its rows; file_row_number takes a quarter of the time.
  const isTaken = columns.some(({ name }) => name.toLowerCase() === 'file_row_number');
  const numbered = (name: string) =>
    isTaken
      ? `(SELECT row_number() OVER () - 1 AS n, ${name} AS value FROM ${file})`
      : `(SELECT file_row_number AS n, ${name} AS value FROM read_parquet(${quoteText(table)}, file_row_number = true))`;
  const counts = await countByTypes(connection, { relation, columns: texts, notation });
  const found = new Map<number, OddValues>();
  for (const [i, sets] of counts) {
    const type = seemingType(sets);
    if (type === undefined) continue;
    const value = typedText('value', notation);
    const isOdd = `${value} IS NOT NULL AND ${holds(type, 'value', notation)} IS NOT TRUE`;
    const [row] = await query(
      connection,
      `SELECT count(${value}) AS n, count(*) FILTER (WHERE ${isOdd}) AS others, min(n) FILTER (WHERE ${isOdd}) AS "row",
          left(arg_min(value, n) FILTER (WHERE ${isOdd}), ${MAX_CHARACTERS}) AS value
        FROM ${numbered(quoteName(columns[i]?.name ?? ''))}`,
    );
    const others = Number(row?.others);
    if (row && others > 0 && others <= (1 - NEARLY_ALL) * Number(row.n))
      found.set(i, {
        type: TYPE_OF_SQL[type],
        others,
        first: { row: Number(row.row), value: String(row.value) },
      });
  }
  return found;
}

/** The narrowest type that holds nearly all values, if any does. */
function seemingType(sets: { types: number; count: number }[]): SqlType | undefined {
  const total = sets.reduce((sum, { count }) => sum + count, 0);
  const shares = new Map<SqlType, number>();
  for (const { types, count } of sets)
    for (const type of typesIn(types)) shares.set(type, (shares.get(type) ?? 0) + count / total);
  shares.delete('VARCHAR');
  const most = Math.max(0, ...shares.values());
  return most < NEARLY_ALL ? undefined : [...shares].find(([, share]) => share === most)?.[0];
}
