import { open } from 'node:fs/promises';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { decompress } from 'fzstd';
import { type FileMetaData, parquetMetadataAsync, parquetRead, type RowGroup } from 'hyparquet';
import { TableError } from '../table/protocol.ts';
import { NANOSECONDS } from './plan-columns.ts';

/** DuckDB keeps only microseconds of INT96 (a day and its nanoseconds) and of zoned times in nanoseconds. */
export interface NanosecondColumn {
  /** In the file. */
  name: string;
  /** Its place among the columns that are stored, those inside of records too. */
  leaf: number;
}

const compressors = {
  GZIP: (bytes: Uint8Array, length: number) => gunzipSync(bytes, { maxOutputLength: length + 1 }),
  BROTLI: (bytes: Uint8Array, length: number) =>
    brotliDecompressSync(bytes, { maxOutputLength: length + 1 }),
  ZSTD: (bytes: Uint8Array, length: number) => decompress(bytes, new Uint8Array(length)),
};
const identity = (nanos: bigint) => nanos;

/** Throws TableError where a value has more than microseconds. */
export async function checkNanoseconds(input: string, columns: NanosecondColumn[]): Promise<void> {
  const file = await open(input);
  try {
    const source = {
      byteLength: (await file.stat()).size,
      slice: async (start: number, end?: number) => {
        const bytes = new Uint8Array((end ?? source.byteLength) - start);
        await file.read(bytes, 0, bytes.length, start);
        return bytes.buffer;
      },
    };
    const metadata = withOnly(await parquetMetadataAsync(source), columns);
    let first = 0;
    for (const group of metadata.row_groups) {
      const before = first;
      await parquetRead({
        file: source,
        metadata: { ...metadata, num_rows: group.num_rows, row_groups: [group] },
        columns: columns.map((_, i) => String(i)),
        compressors,
        parsers: { timestampFromNanoseconds: identity as unknown as (nanos: bigint) => Date },
        onPage: ({ pathInSchema, columnData, rowStart }) =>
          checkPage(columnData, {
            column: columns[Number(pathInSchema[0])]?.name ?? '',
            row: before + rowStart,
          }),
      });
      first += Number(group.num_rows);
    }
  } catch (error) {
    if (error instanceof TableError) throw error;
    throw new TableError({
      reason: `times in nanoseconds cannot be read: ${error instanceof Error ? error.message.slice(0, 200) : error}`,
      hint: 'Write them in microseconds.',
    });
  } finally {
    await file.close();
  }
}

/**
 * The footer with these columns alone, named by their index: hyparquet drops a byte order mark from a name, and takes columns of
 * the same name for each other.
 */
function withOnly({ schema, ...rest }: FileMetaData, columns: NanosecondColumn[]): FileMetaData {
  const leaves = schema.filter(({ num_children }) => !num_children);
  const root = { name: '', num_children: columns.length };
  const elements = columns.map(({ leaf }, i) => ({ ...leaves[leaf], name: String(i) }));
  const groups = rest.row_groups.map(group => ({
    ...group,
    columns: columns.map(({ leaf }, i) => chunkNamed(String(i), group.columns[leaf])),
  }));
  return { ...rest, schema: [root, ...elements], row_groups: groups };
}

function chunkNamed(name: string, chunk: RowGroup['columns'][number] | undefined) {
  if (!chunk?.meta_data) throw new Error('a column has no data');
  return { ...chunk, meta_data: { ...chunk.meta_data, path_in_schema: [name] } };
}

function checkPage(values: ArrayLike<unknown>, { column, row }: { column: string; row: number }) {
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (typeof value === 'bigint' && value % 1_000n !== 0n)
      throw new TableError({
        row: row + i + 1,
        column,
        reason: NANOSECONDS,
        hint: 'Round the column to microseconds, or write it as integers.',
      });
  }
}
