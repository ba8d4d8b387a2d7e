import { createWriteStream } from 'node:fs';
import { finished } from 'node:stream/promises';
import { waitForDrain } from '../../../shared/process/wait-for-drain.ts';
import type { Dialect } from './dialect.ts';
import type { RecordSpan } from './record-scanner.ts';
import { scanRecords } from './scan-records.ts';

const LF = 10;

interface Copy {
  from: string;
  to: string;
  /** Records with these indexes are left out. */
  without: Set<number>;
  /** Whether blank lines of a table of one column are written in quotes. */
  quotesBlank?: boolean;
  onBytes?(bytes: number): void;
}

/**
 * Copies the well-formed records of a file unchanged, with LF: without comments, malformed rows, and blank lines that
 * are no records.
 */
export async function copyRecords(
  dialect: Dialect,
  { from, to, without, quotesBlank, onBytes }: Copy,
): Promise<void> {
  const file = createWriteStream(to, { flags: 'wx', mode: 0o600 });
  const closed = finished(file);
  // Awaited below; a failure meanwhile must not be unhandled.
  closed.catch(() => {});
  let index = 0;
  /** Bytes of a record that has not ended yet, and their offset. */
  let kept: Buffer = Buffer.alloc(0);
  let base = 0;
  const onChunk = async (chunk: Buffer, records: RecordSpan[], next: number) => {
    const bytes = kept.length > 0 ? Buffer.concat([kept, chunk]) : chunk;
    const out = Buffer.allocUnsafe(bytes.length + 3 * records.length);
    let length = 0;
    for (const { start, end } of records) {
      if (without.has(index++)) continue;
      if (quotesBlank && start === end) length += out.write(dialect.quote + dialect.quote, length);
      length += bytes.copy(out, length, start - base, end - base);
      out[length++] = LF;
    }
    // A malformed or commented beginning may be longer than what has come.
    const unused = Math.min(bytes.length, next - base);
    kept = Buffer.from(bytes.subarray(unused));
    base += unused;
    if (!file.write(out.subarray(0, length)) && !(await waitForDrain(file))) await closed;
  };
  await scanRecords(from, dialect, { onChunk, onBytes });
  file.end();
  await closed;
}
