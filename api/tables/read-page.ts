import { type AsyncBuffer, type FileMetaData, parquetRead } from 'hyparquet';
import { type Encode, EXACT_PARSERS, encodeExact, encoderOf } from './encode-value.ts';
import { type PageRequest, TableReadError } from './thread-protocol.ts';

/** Limit on one row group's columns, decoded, in bytes; and on one answer. */
export const MAX_DECODED_BYTES = 128 << 20;
const MAX_ANSWER_BYTES = 32 << 20;

/** Rows as the text of a JSON array. Reads only the row groups and columns that hold them. */
export async function readPage(
  file: AsyncBuffer,
  metadata: FileMetaData,
  { columns, exact, start, end }: PageRequest,
): Promise<string> {
  const wanted = [...new Set(columns)];
  const encoders = new Map(
    metadata.schema
      .filter(element => element.type)
      .map(element => [
        element.name,
        exact.includes(element.name) ? encodeExact : encoderOf(element),
      ]),
  );
  const order = columns.map(column => wanted.indexOf(column));
  const encode = columns.map(column => encoders.get(column) as Encode);
  const lines: string[] = [];
  let length = 0;
  for (const { group, first } of rowGroupsOf(metadata, start, end)) {
    checkSize(group, wanted);
    const count = Number(group.num_rows);
    const rows = await readRows(
      { file, metadata: { ...metadata, num_rows: group.num_rows, row_groups: [group] } },
      { columns: wanted, start: Math.max(0, start - first), end: Math.min(count, end - first) },
    );
    for (const row of rows) {
      const line = `[${order.map((at, i) => encode[i]?.(row[at])).join(',')}]`;
      length += Buffer.byteLength(line);
      if (length > MAX_ANSWER_BYTES) throw tooLarge(MAX_ANSWER_BYTES);
      lines.push(line);
    }
  }
  return `[${lines.join(',')}]`;
}

function readRows(
  source: { file: AsyncBuffer; metadata: FileMetaData },
  { columns, start, end }: Omit<PageRequest, 'exact'>,
): Promise<unknown[][]> {
  return new Promise((resolve, reject) => {
    parquetRead({
      ...source,
      columns,
      rowStart: start,
      rowEnd: end,
      rowFormat: 'array',
      parsers: EXACT_PARSERS,
      onComplete: resolve,
    }).catch(reject);
  });
}

type RowGroup = FileMetaData['row_groups'][number];

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

function checkSize(group: RowGroup, columns: string[]): void {
  const names = new Set(columns);
  let bytes = 0;
  for (const { meta_data: data } of group.columns)
    if (names.has(data?.path_in_schema[0] ?? ''))
      bytes += Number(data?.total_uncompressed_size ?? 0);
  if (bytes > MAX_DECODED_BYTES) throw tooLarge(MAX_DECODED_BYTES);
}

function tooLarge(limit: number): TableReadError {
  return new TableReadError(
    `Payload too large: these rows and columns hold more than ${limit} bytes.`,
    'Ask for fewer rows or columns, or download the whole table from …/data.',
  );
}
