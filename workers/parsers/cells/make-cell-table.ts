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
import { MAX_RATIO, SMALL_BYTES } from '../expand/bound-expansion.ts';
import { openDuckdb } from '../table/duckdb.ts';
import { type FileRequest, type MadeTable, type Resources, TableError } from '../table/protocol.ts';
import { hasLineBreaks } from './has-line-breaks.ts';

/** A value as its file writes it, with the kind that the file states; null if missing. */
export type Cell = { kind: CellKind; text: string } | null;
export type CellKind = 'boolean' | 'number' | 'text';

/** The types of columns of one kind of value. A text never counts as a number, but may be a date or time. */
const TYPES: Record<CellKind, TypeSet> = {
  boolean: setOf('BOOLEAN', 'VARCHAR'),
  number: setOf('BIGINT', 'DOUBLE', 'VARCHAR'),
  text: setOf('DATE', 'TIME', 'TIMESTAMP', 'TIMESTAMPTZ', 'VARCHAR'),
};

/** The most commas of missing values per byte of the file: an empty row is short but needs one per column. */
const MAX_MISSING_RATIO = 100;

type Files = Resources & Pick<FileRequest, 'input' | 'output' | 'expanded'>;

interface Rows {
  names: string[];
  /** Each with as many cells as there are names. */
  rows: AsyncIterable<Cell[]>;
  onProgress(share: number): void;
}

/** Makes a table of cells: each column gets the narrowest type that holds all its values, as for CSV. */
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
  const { size } = await stat(files.input);
  const limits = {
    // A workbook writes a text once, however many cells have it.
    bytes: Math.min(files.expanded, Math.max(SMALL_BYTES, size * MAX_RATIO)),
    missing: Math.min(files.expanded, Math.max(SMALL_BYTES, size * MAX_MISSING_RATIO)),
  };
  const { count, types, hasLineBreaksInValues } = await writeCsv(path, {
    names: first,
    rows,
    limits,
  });
  const table: CsvTable = {
    request: { ...files, parameters: { header: true } },
    dialect: {
      delimiter: ',',
      quote: '"',
      comment: undefined,
      lineBreak: '\n',
      hasUnits: false,
      first,
    },
    text: path,
    records: path,
    lineBreak: '\n',
    hasLineBreaksInValues,
    bytesPerRow: (await stat(path)).size / (count + 1),
    rows: count,
    types,
  };
  const connection = await openDuckdb(files, first.length);
  const written = await writeTable(connection, table, { sample: SAMPLE, onProgress });
  checkRows(written, count + 1);
  return { rows: written.rows, columns: written.columns };
}

interface CsvLimits {
  bytes: number;
  missing: number;
}

async function writeCsv(
  path: string,
  { names, rows, limits }: Pick<Rows, 'names' | 'rows'> & { limits: CsvLimits },
): Promise<Pick<CsvTable, 'hasLineBreaksInValues'> & { count: number; types: TypeSet[] }> {
  const file = createWriteStream(path, { flags: 'wx', mode: 0o600, highWaterMark: 1 << 20 });
  const closed = finished(file);
  // Awaited below; a failure meanwhile must not be unhandled.
  closed.catch(() => {});
  const types: TypeSet[] = names.map(() => ALL_TYPES);
  let count = 0;
  const header = `${names.map(quote).join(',')}\n`;
  let bytes = Buffer.byteLength(header);
  let missing = 0;
  let hasLineBreaksInValues = hasLineBreaks(header, 1);
  file.write(header);
  for await (const row of rows) {
    count++;
    const line = `${row.map(cell => (cell ? quote(cell.text) : '')).join(',')}\n`;
    const length = Buffer.byteLength(line);
    if (length > MAX_RECORD_BYTES)
      throw new TableError({
        reason: `row ${count.toLocaleString('en')} of the table is longer than ${MAX_RECORD_BYTES.toLocaleString('en')} bytes`,
      });
    hasLineBreaksInValues ||= hasLineBreaks(line, 1);
    bytes += length;
    missing += row.filter(cell => cell === null).length;
    if (bytes > limits.bytes || missing > limits.missing)
      throw new TableError({
        reason:
          missing > limits.missing
            ? `the table has more than ${limits.missing.toLocaleString('en')} missing values`
            : `the table takes more than ${limits.bytes.toLocaleString('en')} bytes`,
        hint: 'So much may not come of so small a file, or of any: LIMIT_EXPANDED_BYTES. Split the table, or leave out columns.',
      });
    for (const [i, cell] of row.entries()) if (cell) types[i] = (types[i] ?? 0) & TYPES[cell.kind];
    if (!file.write(line) && !(await waitForDrain(file))) await closed;
  }
  file.end();
  await closed;
  return { count, types, hasLineBreaksInValues };
}

/** A missing value has no quotes, and an empty text has. */
const quote = (text: string) => `"${text.replaceAll('"', '""')}"`;
