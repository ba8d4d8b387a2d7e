import { quoteText } from './duckdb.ts';

/** The API answers a page of rows from one or two row groups, so they are small. */
const GROUP_ROWS = 8_192;
/** Rows of a megabyte are possible; 500 of 300 kB did not fit into LIMIT_PARSE_BYTES. */
const MIN_ROWS = 32;
const GROUP_CELLS = 1_000_000;
const GROUP_BYTES = 32 << 20;
/**
 * Column chunks of a table; groups are larger if there would be more. Each takes 1.2 kB while the table is written, and
 * more for its statistics: the 90,000 of 10 GB with 300 columns exceeded LIMIT_PARSE_BYTES.
 */
const MAX_CHUNKS = 40_000;
/** The size of larger groups. Each byte more takes 2.5 bytes of memory while the table is written. */
const LARGER_GROUP_BYTES = 2 * GROUP_BYTES;
/** Columns. While a row group is written each text column has a dictionary; 2,000 large ones take more than 400 MB. */
const WIDE = 100;
const WIDE_DICTIONARY = 4_096;

/** What is known of its size before it is written. */
export interface TableSize {
  columns: number;
  rows: number;
  /** The average bytes of a row as text. */
  bytesPerRow: number;
}

/** What a table is given that has row groups like another's. */
export interface GroupSize {
  columns: number;
  groupRows: number;
}

/** The SQL statement that writes a query's rows to Parquet, in their order. The API's reader supports Snappy. */
export function parquetStatement(
  { select, output }: { select: string; output: string },
  size: TableSize | GroupSize,
): string {
  const { columns } = size;
  const wanted = 'groupRows' in size ? size.groupRows : groupRows(size);
  const rows = Math.max(MIN_ROWS, Math.floor(wanted));
  const dictionary = columns > WIDE ? `, STRING_DICTIONARY_PAGE_SIZE_LIMIT ${WIDE_DICTIONARY}` : '';
  // DuckDB loses -0 for 0, and a NaN for another one, by the bloom filters that it writes.
  return `COPY (${select}) TO ${quoteText(output)}
    (FORMAT parquet, COMPRESSION snappy, WRITE_BLOOM_FILTER false, ROW_GROUP_SIZE ${rows}${dictionary})`;
}

function groupRows({ columns, rows, bytesPerRow }: TableSize): number {
  const rowsOf = (bytes: number) => bytes / Math.max(1, bytesPerRow);
  const usual = Math.min(GROUP_ROWS, GROUP_CELLS / columns, rowsOf(GROUP_BYTES));
  const least = Math.min((rows * columns) / MAX_CHUNKS, rowsOf(LARGER_GROUP_BYTES));
  return Math.max(usual, least);
}
