const BOM = Buffer.from([0xef, 0xbb, 0xbf]);

/**
 * Removes a byte order mark and blank lines from the beginning of a file. DuckDB misreads such files if the first record
 * contains line breaks. Counts the blank lines in `stripped`.
 */
export async function* stripLeadingBlanks(
  source: AsyncIterable<Buffer>,
  stripped: { lines: number },
): AsyncGenerator<Buffer> {
  let head: Buffer = Buffer.alloc(0);
  let isMarkChecked = false;
  let isAfterCr = false;
  let isInRecords = false;
  for await (const piece of source) {
    if (isInRecords) {
      yield piece;
      continue;
    }
    head = head.length > 0 ? Buffer.concat([head, piece]) : piece;
    if (!isMarkChecked) {
      if (head.length < BOM.length && BOM.subarray(0, head.length).equals(head)) continue;
      isMarkChecked = true;
      if (head.subarray(0, BOM.length).equals(BOM)) head = head.subarray(BOM.length);
    }
    let at = 0;
    for (; head[at] === 10 || head[at] === 13; at++) {
      if (head[at] === 13 || !isAfterCr) stripped.lines++;
      isAfterCr = head[at] === 13;
    }
    isInRecords = at < head.length;
    if (isInRecords) yield head.subarray(at);
    head = Buffer.alloc(0);
  }
  // Shorter than a byte order mark.
  if (head.length > 0) yield head;
}
