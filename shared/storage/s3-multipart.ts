/**
 * Parts are of 8 MiB and grow as an object does, doubling every 2,500: S3 allows 10,000 parts, which is 293 GiB in all.
 * One part is on its way while the next one fills, so a put holds two of them.
 */
const PART = 8 << 20;
const GROWS_AFTER = 2_500;
/** What S3 allows. */
const MAX_PARTS = 10_000;

/** Bytes of the part with this number, from 1; `size` is the object's, where it is known. */
function partSize(number: number, size = 0): number {
  return Math.max(PART * 2 ** Math.floor((number - 1) / GROWS_AFTER), Math.ceil(size / MAX_PARTS));
}

export interface Part {
  /** From 1. */
  number: number;
  /** Lent until the part after the next one is asked for. */
  bytes: Buffer;
  isLast: boolean;
}

/** The source cut into parts; the last one is shorter, and of an empty source the only one is empty. */
export async function* cutIntoParts(
  source: AsyncIterable<Buffer>,
  size?: number,
): AsyncGenerator<Part> {
  const buffers: Buffer[] = [];
  let number = 1;
  let filled = 0;
  const current = () => {
    const wanted = partSize(number, size);
    const kept = buffers[number % 2];
    if (kept?.length === wanted) return kept;
    // Not touched until it is filled, so that a small object takes little.
    const made = Buffer.allocUnsafeSlow(wanted);
    buffers[number % 2] = made;
    return made;
  };
  let buffer = current();
  for await (const piece of source) {
    for (let at = 0; at < piece.length; ) {
      if (filled === buffer.length) {
        yield { number, bytes: buffer, isLast: false };
        if (++number > MAX_PARTS)
          throw new Error(`an object of unknown size may have ${MAX_PARTS} parts`);
        buffer = current();
        filled = 0;
      }
      const copied = piece.copy(buffer, filled, at);
      filled += copied;
      at += copied;
    }
  }
  yield { number, bytes: buffer.subarray(0, filled), isLast: true };
}
