import { classifyError } from '../table/duckdb.ts';
import { TableError } from '../table/protocol.ts';

export const damaged = (why: string) =>
  new TableError({
    reason: `the Parquet file is damaged: ${why}`,
    hint: 'Write the file again, and send it again.',
  });

/** DuckDB's errors about undamaged files, and their remedies. */
const OTHERWISE: [said: RegExp, reason: string | undefined, hint: string][] = [
  [/at least one non-root column/, 'there is no column in it', 'Write the index as a column.'],
  [
    /Could not convert Timestamp/,
    'a time is outside of the years 1 to 9999',
    'Correct the value, or leave the column out.',
  ],
  [
    /only supported|not supported|unsupported|not implemented/i,
    undefined,
    'Write it with the usual encodings.',
  ],
];

/** Takes an error of DuckDB for one about the file, unless memory or disk are full. */
export async function refuseDamaged<T>(reading: Promise<T>, input: string): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    if (classifyError(error) !== 'other') throw error;
    const [line = ''] = String(error instanceof Error ? error.message : error).split('\n');
    const said = line.replaceAll(input, 'the file').slice(0, 300);
    const found = OTHERWISE.find(([pattern]) => pattern.test(said));
    if (!found) throw damaged(said);
    const [, reason = `the Parquet file is written in a way that is not read: ${said}`, hint] =
      found;
    throw new TableError({ reason, hint });
  }
}
