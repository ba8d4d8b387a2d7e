import { stat } from 'node:fs/promises';
import type { DuckDBConnection } from '@duckdb/node-api';
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
import { type CsvRequest, type MadeTable, TableError } from '../table/protocol.ts';
import {
  ALL_TYPES,
  ASKED,
  type Column,
  findTypes,
  findTypesOfFirst,
  holds,
  looksLikeHeader,
  narrowest,
  type SqlType,
  setOf,
  type TypeSet,
} from './column-types.ts';
import { countLines } from './count-lines.ts';
import { type Dialect, detectDialect, MAX_RECORD_BYTES, nameColumns } from './dialect.ts';
import { scanRecords } from './scan-records.ts';
import { findTypeErrors } from './type-errors.ts';

/** Progress after each step, as measured with 100 MB of five columns. */
const SCANNED = 0.3;
const WRITTEN = 0.65;
/** A second pass over the file is needed where a later value is of another type than the first ones. */
const WRITTEN_AGAIN = 0.8;

/** Rows and values of the sample that the first guess at the types is made from. */
const SAMPLE = { rows: 50_000, cells: 1_000_000, least: 1_000 };

/**
 * Converts a CSV file to Parquet: scans it for errors, guesses the column types from the first rows, and writes it while it
 * checks that its column's type holds each value exactly. Where one does not, the types of all values are looked at, and
 * the file is written once more. At last the number of rows is checked. Throws TableError for errors in the file.
 */
export async function makeTable(
  request: CsvRequest,
  onProgress: (share: number) => void,
  sample = SAMPLE,
): Promise<MadeTable> {
  const { input, parameters } = request;
  const dialect = await detectDialect(input, parameters);
  const { size } = await stat(input);
  const scan = await scanRecords(input, dialect, {
    onBytes: bytes => onProgress((bytes / size) * SCANNED),
  });
  if (scan.count > 0) {
    const offsets = scan.problems.map(problem => problem.offset);
    const lines = await countLines(input, dialect.lineBreak, offsets);
    const problems = scan.problems.map(({ offset, reason }) => ({
      row: lines.get(offset),
      reason,
    }));
    const [first = { reason: 'it cannot be read' }] = problems;
    throw new TableError(first, { problems, count: scan.count });
  }
  const connection = await openDuckdb(request, dialect.first.length);
  const guessed = await guessColumns(connection, {
    ...{ request, dialect, sample },
    records: scan.records,
  });
  const { hasHeader } = guessed;
  const relation = readCsv(request, dialect, hasHeader);
  const write = (columns: Column[], from: number, to: number) =>
    runLong(
      connection,
      parquetStatement(
        {
          select: `SELECT ${columns.map(checked).join(', ')} FROM ${relation}`,
          output: request.output,
        },
        { columns: columns.length, bytesPerRow: size / scan.records },
      ),
      share => onProgress(from + share * (to - from)),
    );
  let { columns } = guessed;
  try {
    await write(columns, SCANNED, WRITTEN);
  } catch (error) {
    if (!String(error).includes(MISFIT)) throw error;
    columns = await widenColumns(connection, { relation, columns, asked: guessed.asked });
    await write(columns, WRITTEN, WRITTEN_AGAIN).catch(async (misfit: unknown) => {
      if (!String(misfit).includes(MISFIT)) throw misfit;
      throw await findTypeErrors(connection, { request, dialect, hasHeader, columns, relation });
    });
  }
  const rows = scan.records - (hasHeader ? 1 : 0);
  const written = await countRows(connection, readParquet(request.output));
  // DuckDB skips some broken rows silently.
  if (written !== rows) throw new Error(`DuckDB read ${written} of ${rows} rows`);
  const statistics = await computeColumnStatistics(connection, {
    table: request.output,
    columns,
    onProgress: share => onProgress(WRITTEN_AGAIN + share * (1 - WRITTEN_AGAIN)),
  });
  return { rows, columns: statistics };
}

/** In the message of DuckDB's error about a value that its column's type does not hold. */
const MISFIT = 'value of another type';

/** An SQL expression for a column's value, which fails with MISFIT where its type does not hold the text. */
function checked({ name, type }: Column, i: number): string {
  if (type === 'VARCHAR') return `c${i} AS ${quoteName(name)}`;
  return `CASE WHEN c${i} IS NULL THEN NULL WHEN ${holds(type, `c${i}`)} THEN CAST(c${i} AS ${type})
    ELSE error('${MISFIT}') END AS ${quoteName(name)}`;
}

interface Guess {
  columns: Column[];
  hasHeader: boolean;
  /** By column, the types that the user allows. */
  asked: (TypeSet | undefined)[];
}

async function guessColumns(
  connection: DuckDBConnection,
  {
    request,
    dialect,
    sample,
    records,
  }: { request: CsvRequest; dialect: Dialect; sample: typeof SAMPLE; records: number },
): Promise<Guess> {
  const { first } = dialect;
  const { header, nulls = [], text: asText = false, types = {} } = request.parameters;
  const rows = Math.max(
    sample.least,
    Math.min(sample.rows, Math.floor(sample.cells / first.length)),
  );
  const all = readCsv(request, dialect, true);
  const relation = `(SELECT * FROM ${all} LIMIT ${rows})`;
  const found = await findTypes(connection, { relation, columns: [...first.keys()] });
  const empty = [...found].flatMap(([i, set]) => (set === ALL_TYPES ? [i] : []));
  if (empty.length > 0 && records > rows + 1)
    for (const [i, set] of await findTypes(connection, { relation: all, columns: empty }))
      found.set(i, set);
  const below = [...found.values()];
  const own = await findTypesOfFirst(connection, { first, nulls });
  const hasHeader = header ?? looksLikeHeader(own, below);
  const names = nameColumns(hasHeader ? first : first.map(() => ''));
  for (const name of Object.keys(types))
    if (!names.includes(name))
      throw new TableError({
        row: 1,
        column: name,
        reason: 'there is no such column, though "types" names it',
        hint: `Name columns as they are in the table: ${names.slice(0, 20).join(', ')}${names.length > 20 ? ', …' : ''}.`,
      });
  const asked = names.map(name => {
    const type = types[name] ?? (asText ? 'text' : undefined);
    return type && setOf(...ASKED[type]);
  });
  const sets = below.map((set, i) => (hasHeader ? set : set & (own[i] ?? set)));
  const columns = names.map((name, i) => ({ name, type: choose(sets[i] ?? 0, asked[i]) }));
  return { hasHeader, asked, columns };
}

/** The narrowest type that holds all values; where a user asked for others, one of these, whether it does or not. */
function choose(set: TypeSet, asked: TypeSet | undefined): SqlType {
  if (asked === undefined) return narrowest(set);
  return narrowest(set & asked || asked);
}

/** The columns with the types that hold all of their values. */
async function widenColumns(
  connection: DuckDBConnection,
  { relation, columns, asked }: { relation: string; columns: Column[]; asked: Guess['asked'] },
): Promise<Column[]> {
  const typed = columns.flatMap(({ type }, i) => (type === 'VARCHAR' ? [] : [i]));
  const found = await findTypes(connection, { relation, columns: typed });
  return columns.map(({ name, type }, i) => {
    const set = found.get(i);
    return { name, type: set === undefined ? type : choose(set, asked[i]) };
  });
}

/** The file as a relation of texts c0, c1, …, without a header. */
function readCsv(
  { input, parameters: { nulls = [] } }: CsvRequest,
  { delimiter, quote, lineBreak, first }: Dialect,
  hasHeader: boolean,
): string {
  const columns = first.map((_, i) => `c${i}: 'VARCHAR'`).join(', ');
  const breaks = lineBreak.replace('\r', '\\r').replace('\n', '\\n');
  const missing = ['', ...nulls.filter(value => value !== '')].map(quoteText).join(', ');
  // A record may span two of DuckDB's buffers, but not three.
  const bytes = MAX_RECORD_BYTES + 100_000;
  return `read_csv(${quoteText(input)}, auto_detect = false, columns = {${columns}}, header = ${hasHeader},
    delim = ${quoteText(delimiter)}, quote = ${quoteText(quote)}, escape = ${quoteText(quote)},
    new_line = '${breaks}', comment = '', nullstr = [${missing}], max_line_size = ${bytes}, buffer_size = ${4 * bytes})`;
}
