import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { WindlassError } from '../../../shared/errors/errors.ts';
import type { TableAnswer } from './protocol.ts';

/**
 * The most that a child may answer: the statistics of a table take 2 MB, and a file may have many tables. A child that a
 * malicious file took over could otherwise answer with what makes JSON.parse use up all memory.
 */
const MAX_BYTES = 32 << 20;

export type LastAnswer = Exclude<TableAnswer, { progress: number }>;

/** The child's last answer; undefined if it ends without one. */
export async function readAnswer(
  stdout: Readable,
  onProgress: (share: number) => void,
): Promise<LastAnswer | undefined> {
  // The child may have ended before its input was there.
  if (stdout.destroyed) return undefined;
  let told = 0;
  const lines = createInterface({ input: stdout, crlfDelay: Infinity });
  stdout.on('data', ({ length }: Buffer) => {
    told += length;
    if (told > MAX_BYTES) stdout.destroy();
  });
  // readline does not see the end of a stream that is destroyed.
  stdout.once('close', () => lines.close());
  for await (const line of lines) {
    const answer = parse(line);
    if (!answer) break;
    if ('progress' in answer) onProgress(answer.progress);
    else return answer;
  }
  if (told > MAX_BYTES) throw tellsTooMuch();
  return undefined;
}

/** Undefined for the beginning of an answer that the end of the child has cut. */
function parse(line: string): TableAnswer | undefined {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

function tellsTooMuch(): WindlassError {
  return new WindlassError('parse_failed', {
    detail: `the statistics of its columns take more than ${MAX_BYTES} bytes.`,
    hint: 'Put fewer tables or columns into a file.',
  });
}
