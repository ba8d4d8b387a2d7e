import { stat } from 'node:fs/promises';
import type { DuckDBConnection } from '@duckdb/node-api';
import { computeColumnStatistics } from '../table/column-statistics.ts';
import { name, openDuckdb, query, runLong, text } from '../table/duckdb.ts';
import { type MadeTable, TableError, type TableRequest } from '../table/protocol.ts';
import { writeParquet } from '../table/write-parquet.ts';
import { countLines } from './count-lines.ts';
import { type Dialect, MAX_RECORD_BYTES, nameColumns, readDialect } from './dialect.ts';
import { findMisfits } from './find-misfits.ts';
import {
  type Column,
  classifyColumns,
  classifyFirst,
  looksLikeHeader,
  typeOf,
} from './guess-types.ts';
import { scanRecords } from './scan-records.ts';

type CsvRequest = Extract<TableRequest, { kind: 'csv' }>;

/** Shares of the whole that its steps take, as measured with 100 MB of five columns. */
const SCANNED = 0.3;
const WRITTEN = 0.8;

/**
 * A CSV file into Parquet: scanned for everything that is wrong with it, typed by its first rows, written, counted.
 * Throws TableError for what the file's owner has to correct.
 */
export async function makeTable(
  request: CsvRequest,
  onProgress: (share: number) => void,
): Promise<MadeTable> {
  const { input, parameters } = request;
  const dialect = await readDialect(input, parameters);
  const { size } = await stat(input);
  const scan = await scanRecords(input, dialect, {
    onBytes: bytes => onProgress((bytes / size) * SCANNED),
  });
  if (scan.count > 0) {
    const lines = await countLines(
      input,
      dialect.lineBreak,
      scan.problems.map(it => it.offset),
    );
    const problems = scan.problems.map(({ offset, reason }) => ({
      row: lines.get(offset),
      reason,
    }));
    throw new TableError(
      { ...(problems[0] ?? { reason: 'it cannot be read' }) },
      { problems, count: scan.count },
    );
  }
  const connection = await openDuckdb({ ...request, columns: dialect.first.length });
  const { columns, hasHeader } = await chooseColumns(connection, request, dialect);
  const relation = readCsv(request, dialect, hasHeader);
  const bytesPerRow = size / scan.records;
  const select = columns
    .map(({ name: column, type }, i) => `CAST(c${i} AS ${type}) AS ${name(column)}`)
    .join(', ');
  const write = writeParquet({
    select: `SELECT ${select} FROM ${relation}`,
    output: request.output,
    columns: columns.length,
    bytesPerRow,
  });
  await runLong(connection, write, share =>
    onProgress(SCANNED + share * (WRITTEN - SCANNED)),
  ).catch(async (error: unknown) => {
    if (!/conversion error|could not convert/i.test(String(error))) throw error;
    throw await findMisfits(connection, { request, dialect, hasHeader, columns, relation });
  });
  const rows = scan.records - (hasHeader ? 1 : 0);
  const [written] = await query(
    connection,
    `SELECT count(*) AS n FROM read_parquet(${text(request.output)})`,
  );
  // The reader skips some broken rows without a word.
  if (Number(written?.n) !== rows) throw new Error(`of ${rows} rows ${written?.n} were read`);
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

/** The file as a relation of texts, c0, c1, …, without its first record where that is a header. */
function readCsv(
  { input, parameters: { nulls = [] } }: CsvRequest,
  { delimiter, quote, lineBreak, first }: Dialect,
  hasHeader: boolean,
): string {
  const columns = first.map((_, i) => `c${i}: 'VARCHAR'`).join(', ');
  const breaks = lineBreak.replace('\r', '\\r').replace('\n', '\\n');
  const missing = ['', ...nulls.filter(value => value !== '')].map(text).join(', ');
  // A record may lie in two buffers, never in three.
  const bytes = MAX_RECORD_BYTES + 100_000;
  return `read_csv(${text(input)}, auto_detect = false, columns = {${columns}}, header = ${hasHeader},
    delim = ${text(delimiter)}, quote = ${text(quote)}, escape = ${text(quote)},
    new_line = '${breaks}', comment = '', nullstr = [${missing}], max_line_size = ${bytes}, buffer_size = ${4 * bytes})`;
}
