import type { ColumnStatistics } from '../../shared/database/schema.ts';

/** A Parquet file in the object store. */
export interface TableFile {
  key: string;
  /** Bytes. */
  size: number;
}

export interface PageRequest {
  columns: string[];
  /** Of these, the ones whose integers are JSON strings: isExact(). */
  exact: string[];
  /** Rows from `start` to `end`, `end` excluded. */
  start: number;
  end: number;
}

export type TableTask =
  | ({ kind: 'rows' } & PageRequest)
  | { kind: 'histogram'; column: ColumnStatistics; bins: number };

/** To the thread: a task, or bytes that it requested. */
export type ToThread =
  | { id: number; file: TableFile; task: TableTask }
  | { fetch: number; bytes: ArrayBuffer | undefined };

/** From the thread: a request for bytes (`end` excluded), or the outcome of a task: the text of a JSON value, or an error. */
export type FromThread =
  | { fetch: number; of: number; start: number; end: number }
  | { id: number; json: Uint8Array }
  | { id: number; tooLarge: { detail: string; hint: string } }
  | { id: number; failed: string };

/** The client asked for more than one answer may hold. */
export class TableReadError extends Error {
  readonly hint: string;

  constructor(message: string, hint: string) {
    super(message);
    this.name = 'TableReadError';
    this.hint = hint;
  }
}
