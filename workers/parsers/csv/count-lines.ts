import { createReadStream } from 'node:fs';
import type { LineBreak } from './dialect.ts';

/** Maps byte offsets in a file to line numbers, from 1. */
export async function countLines(
  path: string,
  lineBreak: LineBreak,
  offsets: number[],
): Promise<Map<number, number>> {
  const sorted = [...new Set(offsets)].sort((a, b) => a - b);
  const lines = new Map<number, number>();
  const newline = lineBreak === '\r' ? 13 : 10;
  let line = 1;
  let base = 0;
  let next = 0;
  const end = sorted.at(-1);
  if (end === undefined) return lines;
  for await (const chunk of createReadStream(path, { end, highWaterMark: 1 << 20 })) {
    const bytes = chunk as Buffer;
    let from = 0;
    while (next < sorted.length) {
      const wanted = (sorted[next] ?? 0) - base;
      const found = bytes.indexOf(newline, from);
      if (found >= 0 && found < wanted) {
        line++;
        from = found + 1;
      } else if (wanted < bytes.length) {
        lines.set(sorted[next] ?? 0, line);
        next++;
      } else break;
    }
    base += bytes.length;
  }
  // The end of the file.
  for (const offset of sorted.slice(next)) lines.set(offset, line);
  return lines;
}
