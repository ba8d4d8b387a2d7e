import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { CsvDialect } from '../../../shared/database/schema.ts';
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
import { type PreparedText, prepareText } from './prepare-text.ts';
import { type CsvTable, nullsOf } from './read-csv.ts';
import { readUnits, UNITS_RECORD } from './read-units.ts';
import { type Scan, scanRecords } from './scan-records.ts';
import { SAMPLE, writeTable } from './write-table.ts';

/** Progress after the scan, as measured with 100 MB of five columns. */
const SCANNED = 0.3;

const LINE_BREAKS = {
  '\n': 'LF',
  '\r\n': 'CRLF',
  '\r': 'CR',
} as const satisfies Record<LineBreak, CsvDialect['lineBreak']>;

/**
 * Converts a CSV file to Parquet: makes a text of it, scans that for errors, copies the records where DuckDB does not
 * read the text as it is, and writes the table. Throws TableError for errors in the file.
 */
export async function makeTable(
  request: CsvRequest,
  onProgress: (share: number) => void,
  sample = SAMPLE,
): Promise<MadeTable> {
  refuseQuotesInNulls(request);
  const text = await prepareText(request, request.parameters);
  try {
    const made = await convert(request, { text, onProgress, sample });
    moveDown(made.skipped?.problems, text.lines);
    return made;
  } catch (error) {
    if (error instanceof TableError) moveDown(error.problems, text.lines);
    throw error;
  }
}

/** DuckDB takes none. */
function refuseQuotesInNulls({ parameters }: CsvRequest): void {
  const { quote = '"' } = parameters;
  const bad = nullsOf(parameters).find(text => text.includes(quote));
  if (bad !== undefined)
    throw new TableError({
      reason: `${JSON.stringify(bad)} of "nulls" has the quote`,
      hint: 'Leave it out, or name another "quote".',
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

async function convert(
  request: CsvRequest,
  { text, onProgress, sample }: Conversion,
): Promise<MadeTable> {
  const { parameters, scratch } = request;
  const hasUnits = parameters.units ?? false;
  const dialect = await detectDialect(text.path, { ...parameters, delimiter: text.delimiter });
  const { size } = await stat(text.path);
  const scan = await scanRecords(text.path, dialect, {
    headRecords: hasUnits ? 2 : 1,
    wanted: new Set([UNITS_RECORD]),
    onBytes: bytes => onProgress((bytes / size) * SCANNED),
  });
  const malformed = scan.count > 0 ? await listMalformed(text.path, scan) : undefined;
  if (malformed && (scan.isFatal || malformed.count > (parameters.tolerance ?? 0)))
    throw refuseMalformed(malformed, parameters.encoding);
  const units = hasUnits ? await readUnits(text.path, { dialect, scan }) : [];
  const isRegular = scan.isRegular && !malformed && !hasUnits;
  const records = isRegular ? text.path : join(scratch, 'records.csv');
  if (!isRegular)
    await copyRecords(dialect, {
      from: text.path,
      to: records,
      without: new Set(hasUnits ? [UNITS_RECORD] : []),
    });
  const table: CsvTable = {
    request,
    dialect,
    text: text.path,
    records,
    lineBreak: isRegular ? dialect.lineBreak : '\n',
    count: scan.records - (hasUnits ? 1 : 0),
    bytes: size,
  };
  const { rows, columns, hasHeader } = await writeTable(table, {
    sample,
    onProgress: share => onProgress(SCANNED + share * (1 - SCANNED)),
  });
  return {
    rows,
    columns: columns.map((column, i) => (units[i] ? { ...column, unit: units[i] } : column)),
    dialect: {
      encoding: text.encoding,
      delimiter: dialect.delimiter,
      quote: dialect.quote,
      decimal: parameters.decimal ?? '.',
      header: hasHeader,
      lineBreak: scan.hasMixedLineBreaks ? 'mixed' : LINE_BREAKS[dialect.lineBreak],
      comment: dialect.comment ?? null,
      skip: text.lines,
      units: hasUnits,
      nulls: nullsOf(parameters),
    },
    ...(malformed && { skipped: malformed }),
  };
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
  const hint =
    encoding === undefined && first.reason.includes('not UTF-8')
      ? 'Name the encoding with "encoding".'
      : 'Correct the file. Lines before the table are left out with "skip" or "comment", and malformed rows up to a "tolerance".';
  return new TableError({ ...first, hint }, { problems, count });
}
