/** What a file holds before its first record is dropped while it comes. */
export interface Preamble {
  /** Blank lines that were dropped. */
  lines: number;
}

const BOM = Buffer.from([0xef, 0xbb, 0xbf]);

/**
 * Passes a file on without the byte order mark and the blank lines it may begin with, which DuckDB's reader stumbles
 * over where the first record holds line breaks.
 */
export async function* skipPreamble(
  source: AsyncIterable<Buffer>,
  preamble: Preamble,
): AsyncGenerator<Buffer> {
  let head: Buffer = Buffer.alloc(0);
  let isMarkSeen = false;
  let isAfterCr = false;
  let isOver = false;
  for await (const piece of source) {
    if (isOver) {
      yield piece;
      continue;
    }
    head = head.length > 0 ? Buffer.concat([head, piece]) : piece;
    if (!isMarkSeen) {
      if (head.length < BOM.length && BOM.subarray(0, head.length).equals(head)) continue;
      isMarkSeen = true;
      if (head.subarray(0, BOM.length).equals(BOM)) head = head.subarray(BOM.length);
    }
    let at = 0;
    for (; head[at] === 10 || head[at] === 13; at++) {
      if (head[at] === 13 || !isAfterCr) preamble.lines++;
      isAfterCr = head[at] === 13;
    }
    isOver = at < head.length;
    if (isOver) yield head.subarray(at);
    head = Buffer.alloc(0);
  }
  // Shorter than a byte order mark.
  if (head.length > 0) yield head;
}
