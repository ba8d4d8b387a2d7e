import { TableError } from '../table/protocol.ts';

/** No honest table shrinks more. */
export const MAX_RATIO = 1_000;
/** A small file of nothing but zeros is no bomb. */
const ALWAYS_ALLOWED = 1 << 20;

/** The disk space that any file's table may take. */
export const SMALL_BYTES = 64 << 20;

interface Bounds {
  /** The compressed file's size in bytes. */
  compressed: number;
  limit: number;
}

/** The most bytes that are made of a compressed file. */
export const largestExpansion = ({ compressed, limit }: Bounds): number =>
  Math.min(limit, Math.max(ALWAYS_ALLOWED, compressed * MAX_RATIO));

/** Passes bytes on until all calls exceed the limit, or a thousand times the compressed bytes. */
export function boundExpansion({
  compressed,
  limit,
}: Bounds): (pieces: AsyncIterable<Buffer>) => AsyncGenerator<Buffer> {
  let bytes = 0;
  return async function* (pieces) {
    for await (const piece of pieces) {
      bytes += piece.length;
      if (bytes > limit)
        throw new TableError({
          reason: `the file expands to more than ${limit} bytes`,
          hint: 'LIMIT_EXPANDED_BYTES sets the limit.',
        });
      if (bytes > Math.max(ALWAYS_ALLOWED, compressed * MAX_RATIO))
        throw new TableError({
          reason: `the file expands to more than ${MAX_RATIO.toLocaleString('en')} times its size`,
          hint: 'Send it without compression.',
        });
      yield piece;
    }
  };
}
