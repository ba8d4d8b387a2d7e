import { classifyError } from '../table/duckdb.ts';
import { TableError } from '../table/protocol.ts';

export const damaged = (why: string) =>
  new TableError({
    reason: `the Parquet file is damaged: ${why}`,
    hint: 'Write the file again, and send it again.',
  });

/** What DuckDB says of a file that it cannot read is about the file, unless memory or disk are full. */
export async function refuseDamaged<T>(reading: Promise<T>, input: string): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    if (classifyError(error) !== 'other') throw error;
    const [line = ''] = String(error instanceof Error ? error.message : error).split('\n');
    throw damaged(line.replaceAll(input, 'the file').slice(0, 300));
  }
}
