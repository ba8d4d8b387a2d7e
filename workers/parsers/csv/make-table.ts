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
import { countLines } from './count-lines.ts';
import { type Dialect, detectDialect, MAX_RECORD_BYTES, nameColumns } from './dialect.ts';
import { findTypeErrors } from './find-type-errors.ts';
import {
  type Column,
  classifyColumns,
  classifyFirst,
  looksLikeHeader,
  typeOf,
} from './infer-types.ts';
import { scanRecords } from './scan-records.ts';

/** Progress after each step, as measured with 100 MB of five columns. */
const SCANNED = 0.3;
const WRITTEN = 0.8;

/**
 * Converts a CSV file to Parquet: scans it for errors, infers the column types from the first rows, writes it, and checks
 * the number of rows. Throws TableError for errors in the file.
 */
export async function makeTable(
  request: CsvRequest,
  onProgress: (share: number) => void,
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
  const { columns, hasHeader } = await chooseColumns(connection, request, dialect);
  const relation = readCsv(request, dialect, hasHeader);
  const select = columns
    .map(({ name: column, type }, i) => `CAST(c${i} AS ${type}) AS ${quoteName(column)}`)
    .join(', ');
  const write = parquetStatement(
    { select: `SELECT ${select} FROM ${relation}`, output: request.output },
    { columns: columns.length, bytesPerRow: size / scan.records },
  );
  await runLong(connection, write, share =>
    onProgress(SCANNED + share * (WRITTEN - SCANNED)),
  ).catch(async (error: unknown) => {
    if (!/conversion error|could not convert/i.test(String(error))) throw error;
    throw await findTypeErrors(connection, { request, dialect, hasHeader, columns, relation });
  });
  const rows = scan.records - (hasHeader ? 1 : 0);
  const written = await countRows(connection, readParquet(request.output));
  // DuckDB skips some broken rows silently.
  if (written !== rows) throw new Error(`DuckDB read ${written} of ${rows} rows`);
  const statistics = await computeColumnStatistics(connection, {
    table: request.output,
    columns,
    onProgress: share => onProgress(WRITTEN + share * (1 - WRITTEN)),
  });
  return { rows, columns: statistics };
}

async function chooseColumns(
  connection: DuckDBConnection,
  request: CsvRequest,
  dialect: Dialect,
): Promise<{ columns: Column[]; hasHeader: boolean }> {
  const { first } = dialect;
  const { header, nulls = [], text: asText = false } = request.parameters;
  const below = await classifyColumns(connection, {
    relation: readCsv(request, dialect, true),
    columns: first.length,
  });
  const own = await classifyFirst(connection, { first, nulls });
  const hasHeader = header ?? looksLikeHeader(own, below);
  const names = nameColumns(hasHeader ? first : first.map(() => ''));
  const types = below.map((classes, i) => typeOf(hasHeader ? classes : classes | (own[i] ?? 0)));
  return {
    hasHeader,
    columns: names.map((column, i) => ({
      name: column,
      type: asText ? 'VARCHAR' : (types[i] ?? 'VARCHAR'),
    })),
  };
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
