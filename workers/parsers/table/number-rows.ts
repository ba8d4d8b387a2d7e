import { quoteName, quoteText, readParquet } from './duckdb.ts';

/** A file as a relation with the number of each row. DuckDB's own is faster, and none where a column is called like it. */
export function numberRows(input: string, columns: string[]): { source: string; row: string } {
  const row = 'file_row_number';
  if (!columns.some(name => name.toLowerCase() === row))
    return { source: `read_parquet(${quoteText(input)}, ${row} = true)`, row };
  const own = '\u0001 row';
  const numbered = `SELECT *, row_number() OVER () AS ${quoteName(own)} FROM ${readParquet(input)}`;
  return { source: `(${numbered})`, row: own };
}
