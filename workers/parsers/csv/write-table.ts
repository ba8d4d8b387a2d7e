import type { DuckDBConnection } from '@duckdb/node-api';
import type { ColumnStatistics } from '../../../shared/database/schema.ts';
import { computeColumnStatistics } from '../table/column-statistics.ts';
import { countRows, quoteName, readParquet, runLong } from '../table/duckdb.ts';
import { parquetStatement } from '../table/parquet-statement.ts';
import { castTo, chooseType, findTypes, holds, type Notation, typedText } from './column-types.ts';
import { type Guess, type GuessedColumn, guessColumns, type SAMPLE } from './guess-columns.ts';
import { findOddValues } from './odd-values.ts';
import { type CsvTable, readCsv } from './read-csv.ts';
import { findTypeErrors } from './type-errors.ts';

/** Progress after each step, as measured with 100 MB of five columns. */
const WRITTEN = 0.5;
/** Progress after a second pass, which is needed if a later value has another type than the first ones. */
const WRITTEN_AGAIN = 0.7;
const COUNTED = 0.95;

export interface WriteOptions {
  sample: typeof SAMPLE;
  onProgress(share: number): void;
}

export interface WrittenTable {
  rows: number;
  columns: ColumnStatistics[];
  hasHeader: boolean;
  isHeaderGuessed: boolean;
}

/**
 * Writes a CSV file as Parquet with column types guessed from the first rows, and checks each value. If one does not
 * fit, the types of all values are found and the file is written again. checkRows() checks the number of rows.
 */
export async function writeTable(
  connection: DuckDBConnection,
  table: CsvTable,
  { sample, onProgress }: WriteOptions,
): Promise<WrittenTable> {
  const { request } = table;
  const guess = await guessColumns(connection, { table, sample });
  const { hasHeader, isHeaderGuessed } = guess;
  const relation = readCsv(table, hasHeader);
  const write = ({ columns, notation }: Guess, from: number, to: number) => {
    const select = `SELECT ${columns.map((column, i) => checked(column, i, notation)).join(', ')} FROM ${relation}`;
    return runLong(
      connection,
      parquetStatement(
        { select, output: request.output },
        { columns: columns.length, rows: table.rows, bytesPerRow: table.bytesPerRow },
      ),
      share => onProgress(from + share * (to - from)),
    );
  };
  let final = guess;
  try {
    await write(guess, 0, WRITTEN);
  } catch (error) {
    if (!isMisfit(error)) throw error;
    final = await widenColumns(connection, { relation, guess });
    await write(final, WRITTEN, WRITTEN_AGAIN).catch(async (error: unknown) => {
      throw isMisfit(error) ? await findTypeErrors(connection, { table, relation, final }) : error;
    });
  }
  const rows = await countRows(connection, readParquet(request.output));
  const statistics = await computeColumnStatistics(connection, {
    table: request.output,
    columns: final.columns,
    onProgress: share => onProgress(WRITTEN_AGAIN + share * (COUNTED - WRITTEN_AGAIN)),
  });
  const odd = await findOddValues(connection, { table: request.output, ...final });
  onProgress(1);
  const columns = statistics.map((column, i) => {
    const nearly = odd.get(i);
    return nearly ? { ...column, nearly } : column;
  });
  return { rows, columns, hasHeader, isHeaderGuessed };
}

/** Throws if the table lacks rows of records: DuckDB skips some broken rows silently. */
export function checkRows({ rows, hasHeader }: WrittenTable, records: number): void {
  const expected = records - (hasHeader ? 1 : 0);
  if (rows !== expected) throw new Error(`DuckDB read ${rows} of ${expected} rows`);
}

/** Part of DuckDB's error message about a value that its column's type does not hold. */
const MISFIT = 'value of another type';
const isMisfit = (error: unknown) => String(error).includes(MISFIT);

/** An SQL expression for a column's value; fails with MISFIT if the type does not hold the text. */
function checked({ name, type }: GuessedColumn, i: number, notation: Notation): string {
  const text = `c${i}`;
  if (type === 'VARCHAR') return `${text} AS ${quoteName(name)}`;
  return `CASE WHEN ${text} IS NULL THEN NULL WHEN ${holds(type, text, notation)} THEN ${castTo(type, text, notation)}
    WHEN ${typedText(text, notation)} IS NULL THEN NULL ELSE error('${MISFIT}') END AS ${quoteName(name)}`;
}

/** The columns with the types that hold all of their values. */
async function widenColumns(
  connection: DuckDBConnection,
  { relation, guess }: { relation: string; guess: Guess },
): Promise<Guess> {
  const typed = guess.columns.flatMap(({ type }, i) => (type === 'VARCHAR' ? [] : [i]));
  const notation = { ...guess.notation, fortran: true };
  const found = await findTypes(connection, { relation, columns: typed, notation });
  const columns = guess.columns.map(({ name, type, asked }, i) => {
    const set = found.get(i);
    return { name, asked, type: set === undefined ? type : chooseType(set, asked) };
  });
  return { ...guess, columns, notation };
}
