import type { DuckDBConnection } from '@duckdb/node-api';
import { quoteName, readParquet, runLong } from './duckdb.ts';
import { type GroupSize, parquetStatement, type TableSize } from './parquet-statement.ts';

/** Columns that are written at once: of numbers, short rows. */
export const SLICE = 32;
/** Progress when all slices are written. */
const SLICED = 0.7;

interface Sliced {
  names: string[];
  output: string;
  size: TableSize | GroupSize;
  /** Writes some of the columns to a file, all of their rows in the same order. */
  writeSlice(
    slice: { from: number; to: number; output: string },
    onProgress: (share: number) => void,
  ): Promise<void>;
  onProgress(share: number): void;
}

/** Writes a wide table slice by slice of its columns, which are then put side by side. */
export async function writeSlices(
  connection: DuckDBConnection,
  { names, output, size, writeSlice, onProgress }: Sliced,
): Promise<void> {
  const files: string[] = [];
  for (let from = 0; from < names.length; from += SLICE) {
    const slice = { from, to: from + SLICE, output: `${output}.slice-${files.length}` };
    await writeSlice(slice, share => onProgress(((from + share * SLICE) / names.length) * SLICED));
    files.push(slice.output);
  }
  const rows = files.map(readParquet).join(' POSITIONAL JOIN ');
  const select = `SELECT ${names.map(quoteName).join(', ')} FROM ${rows}`;
  await runLong(connection, parquetStatement({ select, output }, size), share =>
    onProgress(SLICED + share * (1 - SLICED)),
  );
}
