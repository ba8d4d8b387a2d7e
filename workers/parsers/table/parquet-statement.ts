import { quoteText } from './duckdb.ts';

/** The API answers a page of rows from one or two row groups, so they are small. */
const GROUP_ROWS = 8_192;
const MIN_ROWS = 512;
const GROUP_CELLS = 1_000_000;
const GROUP_BYTES = 32 << 20;
/** Columns. While a row group is written each text column has a dictionary; 2,000 large ones take more than 400 MB. */
const WIDE = 100;
const WIDE_DICTIONARY = 4_096;

/** The SQL statement that writes a query's rows to Parquet, in their order. The API's reader supports Snappy. */
export function parquetStatement(
  { select, output }: { select: string; output: string },
  { columns, bytesPerRow }: { columns: number; bytesPerRow: number },
): string {
  const rows = Math.min(GROUP_ROWS, GROUP_CELLS / columns, GROUP_BYTES / Math.max(1, bytesPerRow));
  const dictionary = columns > WIDE ? `, STRING_DICTIONARY_PAGE_SIZE_LIMIT ${WIDE_DICTIONARY}` : '';
  return `COPY (${select}) TO ${quoteText(output)}
    (FORMAT parquet, COMPRESSION snappy, ROW_GROUP_SIZE ${Math.max(MIN_ROWS, Math.floor(rows))}${dictionary})`;
}
