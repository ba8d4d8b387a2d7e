import type { ColumnStatistics } from '../../shared/database/schema.ts';

/** A Parquet file in the object store. */
export interface TableFile {
  key: string;
  /** Bytes. */
  size: number;
}

/** Rows from `start` to `end`, `end` excluded, of some columns. */
export interface RowRange {
  columns: string[];
  start: number;
  end: number;
}

export interface PageRequest extends RowRange {
  /** The columns whose integers are JSON strings: isExact(). */
  exact: string[];
  /** The columns that hold exact sums as texts. */
  sums?: string[];
}

export interface ExportRequest extends RowRange {
  format: ExportFormat;
  /** Whether the piece begins with what precedes the first row: the names of CSV, the schema of Arrow. */
  isFirst: boolean;
}
export type ExportFormat = 'csv' | 'arrow';

/** In doubles of the axis of x. */
export interface SeriesRange {
  from: number;
  to: number;
  /** The last edge, where it is not `to`: the greatest value is in the last bucket. */
  end?: number;
}

export interface SeriesRequest {
  x: ColumnStatistics;
  y: ColumnStatistics;
  points: number;
  range: SeriesRange;
  /** The value of x that `range` counts from, where that is not the least one. */
  base?: string;
}

export type TableTask =
  | ({ kind: 'rows' } & PageRequest)
  | ({ kind: 'export' } & ExportRequest)
  | ({ kind: 'series' } & SeriesRequest)
  | { kind: 'histogram'; column: ColumnStatistics; bins: number };

/** What a task makes: the text of a JSON value, or a piece of an export, with the row after its last one. */
export interface TaskResult<Bytes = Uint8Array> {
  bytes: Bytes;
  next?: number;
}

/** To the thread: a task, or bytes that it requested. */
export type ToThread =
  | { id: number; file: TableFile; task: TableTask }
  | { fetch: number; bytes: ArrayBuffer | undefined };

/** From the thread: a request for bytes (`end` excluded), or the outcome of a task: a result, or an error. */
export type FromThread =
  | { fetch: number; of: number; start: number; end: number }
  | ({ id: number } & TaskResult)
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
