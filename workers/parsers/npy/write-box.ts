import { writeSync } from 'node:fs';

/** A part of an array, in C order; `count` is its width in each dimension. */
export interface Box {
  bytes: Buffer;
  from: number[];
  count: number[];
}

/** The contiguous values of a box: its last dimensions as far as they are whole, and the one before. */
export function runOf(count: number[], shape: number[]): { first: number; length: number } {
  let first = shape.length - 1;
  while (first > 0 && count[first] === shape[first]) first--;
  return { first, length: count.slice(first).reduce((product, length) => product * length, 1) };
}

/** Writes all of the bytes at a place of the file. */
export function writeAt(fd: number, bytes: Buffer, position: number): void {
  for (let done = 0; done < bytes.length; )
    done += writeSync(fd, bytes, done, bytes.length - done, position + done);
}

/** Writes a box, with values of `size` bytes, to its place in the array of this shape at `start`. */
export function writeBox(
  fd: number,
  { bytes, from, count }: Box,
  { shape, size, start }: { shape: number[]; size: number; start: number },
): void {
  const { first, length } = runOf(count, shape);
  const run = length * size;
  const strides = shape.map((_, d) =>
    shape.slice(d + 1).reduce((product, length) => product * length, size),
  );
  const index = [...from];
  for (let at = 0; at < bytes.length; at += run) {
    const position = index.reduce((sum, i, d) => sum + i * (strides[d] as number), start);
    writeAt(fd, bytes.subarray(at, at + run), position);
    for (let d = first - 1; d >= 0; d--) {
      index[d] = (index[d] as number) + 1;
      if ((index[d] as number) < (from[d] as number) + (count[d] as number)) break;
      index[d] = from[d] as number;
    }
  }
}
