const [CR, QUOTE] = [13, 34];

/** CSV whose lines end with CR LF (RFC 4180) as other programs of Unix read and write it: with LF. Quoted text stays as it is. */
export async function* endLinesByLf(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let isQuoted = false;
  for await (const piece of pieces) {
    const kept = new Uint8Array(piece.length);
    let length = 0;
    for (const byte of piece) {
      if (byte === QUOTE) isQuoted = !isQuoted;
      // No CR stands alone outside of quotes.
      if (byte !== CR || isQuoted) kept[length++] = byte;
    }
    yield kept.subarray(0, length);
  }
}
