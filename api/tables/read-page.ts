import { type AsyncBuffer, type FileMetaData, parquetRead } from 'hyparquet';
import { type Encode, EXACT_PARSERS, encodeExact, encoderOf, encodeSum } from './encode-value.ts';
import { checkSize, rowGroupsOf, tooLarge } from './row-groups.ts';
import type { PageRequest, RowRange } from './thread-protocol.ts';

/** Limit on one answer. */
const MAX_ANSWER_BYTES = 32 << 20;

/** Rows as the text of a JSON array. Reads only the row groups and columns that hold them. */
export async function readPage(
  file: AsyncBuffer,
  metadata: FileMetaData,
  { columns, exact, sums = [], start, end }: PageRequest,
): Promise<string> {
  const wanted = [...new Set(columns)];
  const encoders = new Map(
    metadata.schema
      .filter(element => element.type)
      .map(element => [
        element.name,
        exact.includes(element.name)
          ? encodeExact
          : sums.includes(element.name)
            ? encodeSum
            : encoderOf(element),
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
  { columns, start, end }: RowRange,
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
