import type { SchemaElement } from 'hyparquet/src/types.js';
import type { readColumns, Values } from './row-groups.ts';

/** A column, as its parsers gave it, of a row group. */
export interface DecodedColumn {
  element: SchemaElement;
  values: Values;
}

/** Writes rows of a table in one format. */
export interface RowWriter {
  /** How its values are decoded. */
  parsers: Parameters<typeof readColumns>[2]['parsers'];
  /** What precedes the first row. */
  begin(columns: SchemaElement[]): Uint8Array;
  /** Rows of one row group from `from` to `to`, or up to the one that reaches `room` bytes; and the row after the last one. */
  write(
    columns: DecodedColumn[],
    rows: { from: number; to: number; room: number },
  ): { bytes: Uint8Array; next: number };
  /** What follows the last row. */
  end: Uint8Array;
}
