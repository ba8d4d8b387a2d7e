const SPACE = 32;

/** Collapses runs of spaces and trims lines; leaves spaces in quotes and comments. */
export async function* collapseSpaces(
  source: AsyncIterable<Buffer>,
  { quote, comment }: { quote: string; comment: string | undefined },
): AsyncGenerator<Buffer> {
  const q = quote.charCodeAt(0);
  const c = comment?.charCodeAt(0);
  let inQuotes = false;
  let inComment = false;
  let isLineStart = true;
  /** Spaces that are written before the next value of the line. */
  let isPending = false;
  /** Whether the byte before has closed a value in quotes: another quote opens it again. */
  let hasClosed = false;
  for await (const piece of source) {
    const out = Buffer.allocUnsafe(piece.length + 1);
    let at = 0;
    for (const byte of piece) {
      if (byte === SPACE && !inQuotes && !inComment) {
        isPending = !isLineStart;
        hasClosed = false;
        continue;
      }
      const isLineBreak = (byte === 10 || byte === 13) && !inQuotes;
      const isValueStart = isPending || isLineStart;
      inComment = !isLineBreak && (inComment || (isLineStart && byte === c));
      if (isPending && !isLineBreak) out[at++] = SPACE;
      isPending = false;
      isLineStart = isLineBreak;
      const isQuote: boolean = byte === q && !inComment && (inQuotes || isValueStart || hasClosed);
      hasClosed = isQuote && inQuotes;
      if (isQuote) inQuotes = !inQuotes;
      out[at++] = byte;
    }
    yield out.subarray(0, at);
  }
}
