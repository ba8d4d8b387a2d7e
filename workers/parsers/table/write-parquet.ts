import { text } from './duckdb.ts';

/** A page of rows is answered from one or two row groups: small ones are decoded fast. */
const GROUP_ROWS = 8_192;
const LEAST_ROWS = 512;
const GROUP_CELLS = 1_000_000;
const GROUP_BYTES = 32 << 20;
/** Each text column has a dictionary of its own while a row group is written; 2,000 large ones need more than 400 MB. */
const WIDE = 100;
const WIDE_DICTIONARY = 4_096;

/** The statement that writes a query's rows, in their order. Snappy is what the API's reader has built in. */
export function writeParquet({
  select,
  output,
  columns,
  bytesPerRow,
}: {
  select: string;
  output: string;
  columns: number;
  bytesPerRow: number;
}): string {
  const rows = Math.min(GROUP_ROWS, GROUP_CELLS / columns, GROUP_BYTES / Math.max(1, bytesPerRow));
  const dictionary = columns > WIDE ? `, STRING_DICTIONARY_PAGE_SIZE_LIMIT ${WIDE_DICTIONARY}` : '';
  return `COPY (${select}) TO ${text(output)}
    (FORMAT parquet, COMPRESSION snappy, ROW_GROUP_SIZE ${Math.max(LEAST_ROWS, Math.floor(rows))}${dictionary})`;
}
