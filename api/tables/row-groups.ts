import { type AsyncBuffer, type FileMetaData, parquetRead } from 'hyparquet';
import type { ParquetParsers } from 'hyparquet/src/types.js';
import { TableReadError } from './thread-protocol.ts';

/** Limit on one row group's columns, decoded, in bytes. */
const MAX_DECODED_BYTES = 128 << 20;

/** A table that the thread reads. */
export interface OpenTable {
  /** The key of the table's object. */
  key: string;
  file: AsyncBuffer;
  metadata: FileMetaData;
}

export type RowGroup = FileMetaData['row_groups'][number];
export type Values = ArrayLike<unknown>;

/** The row groups that hold any of these rows, each with the index of its first row. */
export function* rowGroupsOf(
  { row_groups }: FileMetaData,
  start: number,
  end: number,
): Generator<{ group: RowGroup; first: number }> {
  let first = 0;
  for (const group of row_groups) {
    if (first >= end) return;
    const next = first + Number(group.num_rows);
    if (next > start) yield { group, first };
    first = next;
  }
}

/** The values of some columns of one row group, by name. */
export async function readColumns(
  { file, metadata }: { file: AsyncBuffer; metadata: FileMetaData },
  group: RowGroup,
  { columns, parsers }: { columns: string[]; parsers: Partial<ParquetParsers> },
): Promise<Map<string, Values>> {
  const pieces = new Map<string, Values[]>(columns.map(name => [name, []]));
  await parquetRead({
    file,
    metadata: { ...metadata, num_rows: group.num_rows, row_groups: [group] },
    columns,
    parsers,
    onChunk: ({ columnName, columnData }) => pieces.get(columnName)?.push(columnData),
  });
  return new Map([...pieces].map(([name, [first, ...more]]) => [name, join(first ?? [], more)]));
}

const join = (first: Values, more: Values[]): Values =>
  more.length === 0 ? first : [first, ...more].flatMap(piece => Array.from(piece));

export function checkSize(group: RowGroup, columns: string[]): void {
  if (sizeOf(group, columns) > MAX_DECODED_BYTES) throw tooLarge(MAX_DECODED_BYTES);
}

/** Bytes of some columns, uncompressed. */
export function sizeOf(group: RowGroup, columns: string[]): number {
  const names = new Set(columns);
  let bytes = 0;
  for (const { meta_data: data } of group.columns)
    if (names.has(data?.path_in_schema[0] ?? ''))
      bytes += Number(data?.total_uncompressed_size ?? 0);
  return bytes;
}

export function tooLarge(limit: number): TableReadError {
  return new TableReadError(
    `these rows and columns hold more than ${limit} bytes.`,
    'Ask for fewer rows or columns, or download the whole table from …/data.',
  );
}
