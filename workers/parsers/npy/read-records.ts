import { createReadStream } from 'node:fs';

/** A few records at once, or one that is long. */
const PIECE_BYTES = 1 << 18;

/** The bytes of a file from an offset on, in pieces that hold whole records. */
export async function* readRecords(
  path: string,
  { offset, size }: { offset: number; size: number },
): AsyncGenerator<Buffer> {
  const bytes = createReadStream(path, { start: offset, highWaterMark: PIECE_BYTES });
  let rest: Buffer[] = [];
  let length = 0;
  for await (const piece of bytes as AsyncIterable<Buffer>) {
    rest.push(piece);
    length += piece.length;
    if (length < size) continue;
    const all = rest.length === 1 ? piece : Buffer.concat(rest);
    const whole = length - (length % size);
    yield all.subarray(0, whole);
    rest = whole < length ? [all.subarray(whole)] : [];
    length -= whole;
  }
}
