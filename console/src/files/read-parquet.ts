import { decompress } from 'fzstd';
import { type AsyncBuffer, parquetMetadataAsync, parquetRead } from 'hyparquet';
import { readFile } from '../service/files.ts';

/** The most that is read of a file, so that a look at one of many GB does not load it. */
const MAX_BYTES = 16 << 20;
/** The compressions that are read here; others need more code than the page has. */
const CODECS = new Set(['UNCOMPRESSED', 'SNAPPY', 'ZSTD']);

export interface ParquetHead {
  rowCount: number;
  columnCount: number;
  /** The names of the first columns. */
  columns: string[];
  rows: string[][];
  /** Why there are no rows. */
  problem?: string;
}

/** The first rows of a Parquet file on a host. Reads its footer, and of its first rows the columns that are shown. */
export async function readParquet(
  { sid, path, size }: { sid: string; path: string; size: number },
  { most, columns: mostColumns, signal }: { most: number; columns: number; signal: AbortSignal },
): Promise<ParquetHead> {
  const file: AsyncBuffer = {
    byteLength: size,
    slice: async (start, end = size) => {
      if (end - start > MAX_BYTES) throw new Error('More of it is needed than is read here.');
      const bytes = await readFile(sid, path, { start, length: end - start, signal });
      return bytes.arrayBuffer();
    },
  };
  const metadata = await parquetMetadataAsync(file);
  const chunks = metadata.row_groups[0]?.columns.map(({ meta_data }) => meta_data) ?? [];
  const names = metadata.schema.filter(({ num_children }) => !num_children).map(({ name }) => name);
  const columns = [...new Set(chunks.map(chunk => chunk?.path_in_schema[0] ?? ''))];
  const shown = columns.slice(0, mostColumns);
  const head = {
    rowCount: Number(metadata.num_rows),
    columnCount: names.length,
    columns: shown.length > 0 ? shown : names.slice(0, mostColumns),
    rows: [],
  };
  const read = chunks.filter(chunk => shown.includes(chunk?.path_in_schema[0] ?? ''));
  const strange = read.find(chunk => chunk && !CODECS.has(chunk.codec));
  if (strange)
    return {
      ...head,
      problem: `Its values are compressed by ${strange.codec}, which is not read here.`,
    };
  const bytes = read.reduce((sum, chunk) => sum + Number(chunk?.total_compressed_size ?? 0), 0);
  if (bytes > MAX_BYTES)
    return { ...head, problem: 'Its first rows lie among more bytes than are read here.' };
  const rows: string[][] = [];
  await parquetRead({
    file,
    metadata,
    columns: shown,
    rowStart: 0,
    rowEnd: Math.min(most, head.rowCount),
    compressors: { ZSTD: (input, length) => decompress(input, new Uint8Array(length)) },
    onComplete: found => rows.push(...found.map(row => row.map(describe))),
  });
  return { ...head, rows };
}

function describe(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (value instanceof Date) return value.toISOString();
  if (typeof value !== 'object') return String(value);
  return JSON.stringify(value, (_name, part) => (typeof part === 'bigint' ? String(part) : part));
}
