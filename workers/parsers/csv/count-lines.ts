import { createReadStream } from 'node:fs';

const LF = 10;
const CR = 13;

/** Maps byte offsets in a file to line numbers, from 1. A line ends in LF, CRLF or CR. */
export async function countLines(path: string, offsets: number[]): Promise<Map<number, number>> {
  const sorted = [...new Set(offsets)].sort((a, b) => a - b);
  const lines = new Map<number, number>();
  let line = 1;
  let base = 0;
  let next = 0;
  let isAfterCr = false;
  const end = sorted.at(-1);
  if (end === undefined) return lines;
  for await (const chunk of createReadStream(path, { end, highWaterMark: 1 << 20 })) {
    const bytes = chunk as Buffer;
    for (let i = 0; i < bytes.length; i++) {
      if (base + i === sorted[next]) lines.set(sorted[next++] as number, line);
      const byte = bytes[i];
      if (byte === CR || (byte === LF && !isAfterCr)) line++;
      isAfterCr = byte === CR;
    }
    base += bytes.length;
  }
  // The end of the file.
  for (const offset of sorted.slice(next)) lines.set(offset, line);
  return lines;
}
