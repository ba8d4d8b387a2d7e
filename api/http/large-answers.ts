import type { Response } from 'express';
import type { ExactBodies } from '../exact-json/exact-bodies.ts';

/** Bytes of text, as stored, that one list has at most: in JSON a control character is six times as long. */
const MOST = 4 << 20;
/** An answer of less is held as any other. */
const LITTLE = 256 << 10;

/**
 * How many of the rows of these sizes, from the first one on, an answer may hold together, and their bytes; one at least,
 * where there is one.
 */
export function countFitting(sizes: number[]): { count: number; bytes: number } {
  let bytes = 0;
  for (const [count, size] of sizes.entries()) {
    if (count > 0 && bytes + size > MOST) return { count, bytes };
    bytes += size;
  }
  return { count: sizes.length, bytes };
}

/** Waits until an answer of so many bytes may be made, before what it is made of is read; see ExactBodies.makeRoom(). */
export async function makeRoomFor(
  { bodies, res }: { bodies: ExactBodies; res: Response },
  bytes: number,
): Promise<void> {
  if (bytes > LITTLE) await bodies.makeRoom(res, bytes);
}
