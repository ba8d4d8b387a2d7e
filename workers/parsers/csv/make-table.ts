import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { DuckDBConnection } from '@duckdb/node-api';
import type { CsvDialect } from '../../../shared/database/schema.ts';
import type { ParserParameters } from '../../../shared/uploads/parsers.ts';
import { openDuckdb } from '../table/duckdb.ts';
import {
  type CsvRequest,
  MAX_PROBLEMS,
  type MadeTable,
  TableError,
  type TableProblem,
} from '../table/protocol.ts';
import { copyRecords } from './copy-records.ts';
import { countLines } from './count-lines.ts';
import { detectDialect, type LineBreak } from './dialect.ts';
import { EarlyTable } from './early-table.ts';
import { SAMPLE } from './guess-columns.ts';
import { type PreparedText, prepareText, textIn } from './prepare-text.ts';
import { type CsvTable, nullsOf } from './read-csv.ts';
import { readUnits, UNITS_RECORD } from './read-units.ts';
import { AFTER_QUOTES, type Scan } from './record-scanner.ts';
import { scanRecords } from './scan-records.ts';
import { checkRows, type WrittenTable, writeTable } from './write-table.ts';

/** Scanned before the table is begun, to estimate the length of rows. */
const EARLY_BYTES = 4 << 20;
/** Row groups are too large if rows are on average this many times longer than the first ones. */
const MUCH_LONGER = 2;
/** Progress after the scan, as measured with 100 MB of five columns. */
const SCANNED = 0.3;

const LINE_BREAKS = {
  '\n': 'LF',
  '\r\n': 'CRLF',
  '\r': 'CR',
} as const satisfies Record<LineBreak, CsvDialect['lineBreak']>;

/**
 * Converts a CSV file to Parquet: decodes the text, scans it for errors, copies the records if DuckDB cannot read the
 * text as it is, and writes the table. Throws TableError for errors in the file.
 */
export async function makeTable(
  request: CsvRequest,
  onProgress: (share: number) => void,
  sample = SAMPLE,
): Promise<MadeTable> {
  refuseInNulls(request, 'quote', request.parameters.quote ?? '"');
  const text = await prepareText(request, request.parameters);
  const given = text.hasHeader ? { header: true } : {};
  const made = await convert(
    { ...request, parameters: { ...request.parameters, ...given } },
    { text, onProgress, sample },
  ).catch((error: unknown) => {
    if (error instanceof TableError) moveDown(error.problems, text.lines);
    throw error;
  });
  if (text.hasBlankValues && made.dialect?.header === false) {
    await removeMade(request);
    const parameters = { ...request.parameters, header: false };
    return makeTable({ ...request, parameters }, onProgress, sample);
  }
  moveDown(made.skipped?.problems, text.lines);
  return made;
}

const recordsIn = (scratch: string) => join(scratch, 'records.csv');

/** Removes what a first attempt has written. */
async function removeMade({ scratch, output }: CsvRequest): Promise<void> {
  for (const path of [textIn(scratch), recordsIn(scratch), output]) await rm(path, { force: true });
}

/** DuckDB takes none. */
function refuseInNulls(
  { parameters }: CsvRequest,
  what: 'quote' | 'delimiter',
  sign: string,
): void {
  const bad = nullsOf(parameters).find(text => text.includes(sign));
  if (bad !== undefined)
    throw new TableError({
      reason: `${JSON.stringify(bad)} of "nulls" has the ${what} ${JSON.stringify(sign)}`,
      hint: `Leave it out, or name another "${what}".`,
    });
}

/** Lines were counted from the first record on. */
function moveDown(problems: TableProblem[] = [], lines: number): void {
  for (const problem of problems) if (problem.row !== undefined) problem.row += lines;
}

interface Conversion {
  text: PreparedText;
  onProgress(share: number): void;
  sample: typeof SAMPLE;
}

async function convert(request: CsvRequest, conversion: Conversion): Promise<MadeTable> {
  const { text } = conversion;
  const { parameters } = request;
  const dialect = await detectDialect(text.path, { ...parameters, delimiter: text.delimiter });
  refuseInNulls(request, 'delimiter', dialect.delimiter);
  const connection = await openDuckdb(request, dialect.first.length);
  const source: Source = { request, dialect, text: text.path, size: (await stat(text.path)).size };
  const { scan, early } = await scanText(connection, source, conversion);
  const malformed = scan.count > 0 ? await listMalformed(text.path, scan) : undefined;
  if (malformed && (scan.isFatal || malformed.count > (parameters.tolerance ?? 0)))
    throw refuseMalformed(malformed, parameters.encoding);
  const units = dialect.hasUnits ? await readUnits(text.path, { dialect, scan }) : [];
  const written =
    (await early?.take()) ?? (await writeScanned(connection, { source, scan, conversion }));
  checkRows(written, scan.records - (dialect.hasUnits ? 1 : 0));
  const { rows, columns, hasHeader, isHeaderGuessed } = written;
  return {
    rows,
    columns: columns.map((column, i) => (units[i] ? { ...column, unit: units[i] } : column)),
    dialect: {
      encoding: text.encoding,
      delimiter: dialect.delimiter,
      quote: dialect.quote,
      decimal: parameters.decimal ?? '.',
      header: hasHeader,
      ...(isHeaderGuessed && { headerGuessed: true }),
      lineBreak: scan.hasMixedLineBreaks ? 'mixed' : LINE_BREAKS[dialect.lineBreak],
      comment: dialect.comment ?? null,
      skip: text.lines,
      units: dialect.hasUnits,
      nulls: nullsOf(parameters),
    },
    ...(malformed && { skipped: malformed }),
  };
}

interface Source extends Pick<CsvTable, 'request' | 'dialect' | 'text'> {
  /** Bytes. */
  size: number;
}

/** Whether DuckDB reads the text as it is. */
const isRegular = ({ request, dialect }: Source, { isRegular, count, hasBlankRecords }: Scan) =>
  isRegular &&
  count === 0 &&
  !dialect.hasUnits &&
  !(hasBlankRecords && areBlankLinesValues(request.parameters));

/** If they are, DuckDB passes over them, but for those in quotes. */
const areBlankLinesValues = (parameters: ParserParameters<'csv'>) =>
  !nullsOf(parameters).includes('');

/** Scans the text, and begins the table meanwhile if the text looks regular. */
async function scanText(
  connection: DuckDBConnection,
  source: Source,
  { sample, onProgress }: Conversion,
): Promise<{ scan: Scan; early: EarlyTable | undefined }> {
  const { dialect, text, size } = source;
  let early: EarlyTable | undefined;
  const scan = await scanRecords(text, dialect, {
    wanted: new Set([UNITS_RECORD]),
    onBytes: (bytes, soFar) => {
      if (early) return;
      onProgress((bytes / size) * SCANNED);
      if (bytes < EARLY_BYTES || bytes === size || !isRegular(source, soFar)) return;
      early = new EarlyTable(connection, asItIs(source, soFar, bytes / soFar.records), {
        sample,
        onProgress: share => onProgress(SCANNED + share * (1 - SCANNED)),
      });
    },
  });
  if (
    early &&
    isRegular(source, scan) &&
    scan.hasLineBreaksInValues === early.hasLineBreaksInValues &&
    size / scan.records <= MUCH_LONGER * early.bytesPerRow
  )
    return { scan, early };
  await early?.drop();
  return { scan, early: undefined };
}

const asItIs = (
  { request, dialect, text, size }: Source,
  { hasLineBreaksInValues }: Scan,
  bytesPerRow: number,
): CsvTable => ({
  request,
  dialect,
  text,
  bytesPerRow,
  rows: size / bytesPerRow,
  records: text,
  lineBreak: dialect.lineBreak,
  hasLineBreaksInValues,
});

/** Writes the table of a scanned text, from a copy of its records if it is not regular. */
async function writeScanned(
  connection: DuckDBConnection,
  { source, scan, conversion }: { source: Source; scan: Scan; conversion: Conversion },
): Promise<WrittenTable> {
  const { request, dialect, text, size } = source;
  let table = asItIs(source, scan, size / scan.records);
  if (!isRegular(source, scan)) {
    const records = recordsIn(request.scratch);
    await copyRecords(dialect, {
      from: text,
      to: records,
      without: new Set(dialect.hasUnits ? [UNITS_RECORD] : []),
      quotesBlank: areBlankLinesValues(request.parameters),
    });
    table = { ...table, records, lineBreak: '\n' };
  }
  return writeTable(connection, table, {
    sample: conversion.sample,
    onProgress: share => conversion.onProgress(SCANNED + share * (1 - SCANNED)),
  });
}

interface Malformed {
  count: number;
  problems: TableProblem[];
}

async function listMalformed(path: string, { problems, count }: Scan): Promise<Malformed> {
  const lines = await countLines(
    path,
    problems.map(problem => problem.offset),
  );
  const listed = problems.map(({ offset, reason }) => ({ row: lines.get(offset), reason }));
  return { count, problems: listed.slice(0, MAX_PROBLEMS) };
}

function refuseMalformed({ problems, count }: Malformed, encoding: string | undefined): TableError {
  const [first = { reason: 'it cannot be read' }] = problems;
  return new TableError({ ...first, hint: hintFor(first, encoding) }, { problems, count });
}

function hintFor({ reason }: TableProblem, encoding: string | undefined): string {
  if (encoding === undefined && reason.includes('not UTF-8'))
    return 'Name the encoding with "encoding".';
  if (reason === AFTER_QUOTES)
    return 'Name what is between the values with "delimiter", such as a space, or correct the file: a quote in a value is doubled.';
  return 'Correct the file. Lines before the table are left out with "skip" or "comment", and malformed rows up to a "tolerance".';
}
