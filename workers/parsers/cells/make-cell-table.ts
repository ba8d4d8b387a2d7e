import { createWriteStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { finished } from 'node:stream/promises';
import { waitForDrain } from '../../../shared/process/wait-for-drain.ts';
import { ALL_TYPES, setOf, type TypeSet } from '../csv/column-types.ts';
import { MAX_COLUMNS, MAX_RECORD_BYTES } from '../csv/dialect.ts';
import { SAMPLE } from '../csv/guess-columns.ts';
import { nameColumns } from '../csv/name-columns.ts';
import type { CsvTable } from '../csv/read-csv.ts';
import { checkRows, writeTable } from '../csv/write-table.ts';
import { openDuckdb } from '../table/duckdb.ts';
import { type FileRequest, type MadeTable, type Resources, TableError } from '../table/protocol.ts';

/** A value as its file writes it, and what kind of value the file says it is; null if it is missing. */
export type Cell = { kind: CellKind; text: string } | null;
export type CellKind = 'boolean' | 'number' | 'text';

/** Of columns with values of one kind only. A text is never taken for a number, but may be a date or a time. */
const TYPES: Record<CellKind, TypeSet> = {
  boolean: setOf('BOOLEAN', 'VARCHAR'),
  number: setOf('BIGINT', 'DOUBLE', 'VARCHAR'),
  text: setOf('DATE', 'TIME', 'TIMESTAMP', 'TIMESTAMPTZ', 'VARCHAR'),
};

/** Bytes of CSV for each byte of the file: a row without values is short, and has a comma for each column. */
const MAX_CSV_RATIO = 100;
/** A small file takes no disk, however thinly it is filled. */
const ALWAYS_ALLOWED = 64 << 20;

type Files = Resources & Pick<FileRequest, 'input' | 'output' | 'expanded'>;

interface Rows {
  names: string[];
  /** Each with as many cells as there are names. */
  rows: AsyncIterable<Cell[]>;
  onProgress(share: number): void;
}

/** Makes a table of cells: each column gets the narrowest type that holds all of its values, as in a CSV file. */
export async function makeCellTable(
  files: Files,
  { names, rows, onProgress }: Rows,
): Promise<MadeTable> {
  if (names.length === 0 || names.length > MAX_COLUMNS)
    throw new TableError({
      reason: `there are ${names.length.toLocaleString('en')} columns, and at least 1 and at most ${MAX_COLUMNS.toLocaleString('en')} can be kept`,
    });
  const path = `${files.output}.csv`;
  const first = nameColumns(names);
  const inProportion = Math.max(ALWAYS_ALLOWED, (await stat(files.input)).size * MAX_CSV_RATIO);
  const limit = Math.min(files.expanded, inProportion);
  const { count, types } = await writeCsv(path, { names: first, rows, limit });
  const table: CsvTable = {
    request: { ...files, parameters: { header: true } },
    dialect: { delimiter: ',', quote: '"', comment: undefined, lineBreak: '\n', first },
    text: path,
    records: path,
    lineBreak: '\n',
    bytesPerRow: (await stat(path)).size / (count + 1),
    rows: count,
    types,
  };
  const connection = await openDuckdb(files, first.length);
  const written = await writeTable(connection, table, { sample: SAMPLE, onProgress });
  checkRows(written, count + 1);
  return { rows: written.rows, columns: written.columns };
}

async function writeCsv(
  path: string,
  { names, rows, limit }: { names: string[]; rows: AsyncIterable<Cell[]>; limit: number },
): Promise<{ count: number; types: TypeSet[] }> {
  const file = createWriteStream(path, { flags: 'wx', mode: 0o600, highWaterMark: 1 << 20 });
  const closed = finished(file);
  // Awaited below; a failure meanwhile must not be unhandled.
  closed.catch(() => {});
  const types: TypeSet[] = names.map(() => ALL_TYPES);
  let count = 0;
  const header = `${names.map(quote).join(',')}\n`;
  let bytes = Buffer.byteLength(header);
  file.write(header);
  for await (const row of rows) {
    count++;
    const line = `${row.map(cell => (cell ? quote(cell.text) : '')).join(',')}\n`;
    const length = Buffer.byteLength(line);
    if (length > MAX_RECORD_BYTES)
      throw new TableError({
        row: count,
        reason: `the row is longer than ${MAX_RECORD_BYTES.toLocaleString('en')} bytes`,
      });
    bytes += length;
    if (bytes > limit)
      throw new TableError({
        row: count,
        reason: `the table takes more than ${limit.toLocaleString('en')} bytes, most of it for columns without a value`,
        hint: `LIMIT_EXPANDED_BYTES and ${MAX_CSV_RATIO} times the file are the limits. Split the table, or leave out columns.`,
      });
    for (const [i, cell] of row.entries()) if (cell) types[i] = (types[i] ?? 0) & TYPES[cell.kind];
    if (!file.write(line) && !(await waitForDrain(file))) await closed;
  }
  file.end();
  await closed;
  return { count, types };
}

/** A missing value has no quotes, and an empty text has. */
const quote = (text: string) => `"${text.replaceAll('"', '""')}"`;
