const SPACE = 32;

/** Makes runs of spaces one, and removes those at the beginning and end of lines; spaces in quotes stay. */
export async function* collapseSpaces(
  source: AsyncIterable<Buffer>,
  quote: string,
): AsyncGenerator<Buffer> {
  const q = quote.charCodeAt(0);
  let inQuotes = false;
  let isLineStart = true;
  /** Spaces that are written before the next value of the line. */
  let isPending = false;
  for await (const piece of source) {
    const out = Buffer.allocUnsafe(piece.length + 1);
    let at = 0;
    for (const byte of piece) {
      if (byte === SPACE && !inQuotes) {
        isPending = !isLineStart;
        continue;
      }
      const isLineBreak = (byte === 10 || byte === 13) && !inQuotes;
      const isValueStart = isPending || isLineStart;
      if (isPending && !isLineBreak) out[at++] = SPACE;
      isPending = false;
      isLineStart = isLineBreak;
      // A doubled quote closes and opens.
      if (byte === q && (inQuotes || isValueStart || out[at - 1] === q)) inQuotes = !inQuotes;
      out[at++] = byte;
    }
    yield out.subarray(0, at);
  }
}
