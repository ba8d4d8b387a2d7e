import { createWriteStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { finished } from 'node:stream/promises';
import { waitForDrain } from '../../../shared/process/wait-for-drain.ts';
import { MAX_COLUMNS, MAX_RECORD_BYTES } from '../csv/dialect.ts';
import { nameColumns } from '../csv/name-columns.ts';
import type { CsvTable } from '../csv/read-csv.ts';
import { computeColumnStatistics } from '../table/column-statistics.ts';
import {
  countRows,
  openDuckdb,
  quoteName,
  quoteText,
  readParquet,
  runLong,
} from '../table/duckdb.ts';
import { parquetStatement } from '../table/parquet-statement.ts';
import { type MadeTable, type Resources, TableError } from '../table/protocol.ts';
import type { SqlType } from '../table/sql-types.ts';
import { hasLineBreaks } from './has-line-breaks.ts';

/** A column whose type its file says. */
export interface TypedColumn {
  name: string;
  type: Exclude<SqlType, 'TIMESTAMPTZ'>;
  unit?: string;
}

interface Rows {
  columns: TypedColumn[];
  /** CSV, each with its line feed; values other than texts as JavaScript writes them, missing ones empty. */
  pieces: AsyncIterable<CsvPiece>;
  /** How many there are. */
  count: number;
  onProgress(share: number): void;
}

export interface CsvPiece {
  text: string;
  rows: number;
}

/** Progress after the rows are written as CSV, and after DuckDB has read them. */
const WRITTEN = 0.5;
const READ = 0.8;

/** Dates are days since 1970, timestamps microseconds since then. */
const FROM_CSV: Partial<Record<SqlType, { as: SqlType; value: (column: string) => string }>> = {
  DATE: { as: 'BIGINT', value: column => `CAST(make_timestamp(${column} * 86400000000) AS DATE)` },
  TIMESTAMP: { as: 'BIGINT', value: column => `make_timestamp(${column})` },
};

/** A text in CSV. Throws TableError for one that no table holds. */
export function quoteCell(text: string, place: { row: number; column: string }): string {
  if (/[\0\p{Surrogate}]/u.test(text))
    throw new TableError({ ...place, reason: 'it has a NUL character or half a surrogate pair' });
  if (Buffer.byteLength(text) > MAX_RECORD_BYTES / 2)
    throw new TableError({
      ...place,
      reason: `it is longer than ${(MAX_RECORD_BYTES / 2).toLocaleString('en')} bytes`,
    });
  return `"${text.replaceAll('"', '""')}"`;
}

/** A row in CSV. Throws TableError if it is too long for DuckDB. */
export function joinCells(cells: string[], row: number): string {
  const line = `${cells.join(',')}\n`;
  if (line.length <= MAX_RECORD_BYTES || Buffer.byteLength(line) <= 2 * MAX_RECORD_BYTES)
    return line;
  throw new TableError({
    row,
    reason: `the row is longer than ${MAX_RECORD_BYTES.toLocaleString('en')} bytes`,
  });
}

/** Makes a table of values of known types: keeps NaN and infinities, and guesses nothing. */
export async function makeTypedTable(
  files: Resources & { output: string },
  { columns, pieces, count, onProgress }: Rows,
): Promise<MadeTable> {
  if (columns.length === 0 || columns.length > MAX_COLUMNS)
    throw new TableError({
      reason: `there are ${columns.length.toLocaleString('en')} columns, and at least 1 and at most ${MAX_COLUMNS.toLocaleString('en')} can be kept`,
    });
  const names = nameColumns(columns.map(({ name }) => name));
  const named = columns.map((column, i) => ({ ...column, name: names[i] as string }));
  const csv = `${files.output}.csv`;
  const { hasLineBreaksInValues } = await writePieces(csv, pieces, written =>
    onProgress((written / Math.max(1, count)) * WRITTEN),
  );
  const connection = await openDuckdb(files, columns.length);
  const values = named.map(({ name, type }, i) => {
    const value = FROM_CSV[type]?.value(`c${i}`) ?? `c${i}`;
    return `${value} AS ${quoteName(name)}`;
  });
  const types = named.map(({ type }, i) => `c${i}: '${FROM_CSV[type]?.as ?? type}'`).join(', ');
  const longest = 4 * MAX_RECORD_BYTES;
  const from = `read_csv(${quoteText(csv)}, auto_detect = false, columns = {${types}}, header = false, delim = ',',
    quote = '"', escape = '"', new_line = '\\n', comment = '', nullstr = [''], allow_quoted_nulls = false,
    max_line_size = ${longest}, buffer_size = ${4 * longest}, parallel = ${!hasLineBreaksInValues})`;
  const { size } = await stat(csv);
  const statement = parquetStatement(
    { select: `SELECT ${values.join(', ')} FROM ${from}`, output: files.output },
    { columns: columns.length, rows: count, bytesPerRow: size / Math.max(1, count) },
  );
  await runLong(connection, statement, share => onProgress(WRITTEN + share * (READ - WRITTEN)));
  const rows = await countRows(connection, readParquet(files.output));
  if (rows !== count) throw new Error(`DuckDB read ${rows} of ${count} rows`);
  const statistics = await computeColumnStatistics(connection, {
    table: files.output,
    columns: named,
    onProgress: share => onProgress(READ + share * (1 - READ)),
  });
  return {
    rows,
    columns: statistics.map((column, i) => ({
      ...column,
      ...(named[i]?.unit ? { unit: named[i].unit } : {}),
    })),
  };
}

async function writePieces(
  path: string,
  pieces: AsyncIterable<CsvPiece>,
  onRows: (written: number) => void,
): Promise<Pick<CsvTable, 'hasLineBreaksInValues'>> {
  const file = createWriteStream(path, { flags: 'wx', mode: 0o600, highWaterMark: 1 << 20 });
  const closed = finished(file);
  // Awaited below; a failure meanwhile must not be unhandled.
  closed.catch(() => {});
  let written = 0;
  let hasLineBreaksInValues = false;
  for await (const piece of pieces) {
    written += piece.rows;
    hasLineBreaksInValues ||= hasLineBreaks(piece.text, piece.rows);
    onRows(written);
    if (!file.write(piece.text) && !(await waitForDrain(file))) await closed;
  }
  file.end();
  await closed;
  return { hasLineBreaksInValues };
}
