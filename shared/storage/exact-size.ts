/** Thrown by a put that was given a size where the source holds another number of bytes. */
export class WrongSize extends Error {
  constructor(expected: number, given: string) {
    super(`the source gave ${given} bytes where ${expected} were announced`);
    this.name = 'WrongSize';
  }
}

/**
 * The source's bytes, which must be exactly so many. The last piece comes only once the source has ended: a server that
 * has all the bytes it was promised makes the object visible, and could not be told any more that there were others.
 */
export async function* exactly(
  size: number,
  source: AsyncIterable<Buffer>,
): AsyncGenerator<Buffer> {
  let seen = 0;
  let held: Buffer | undefined;
  for await (const piece of source) {
    seen += piece.length;
    if (seen > size) throw new WrongSize(size, `at least ${seen}`);
    if (held) yield held;
    held = piece;
  }
  if (seen !== size) throw new WrongSize(size, `only ${seen}`);
  if (held) yield held;
}

export function assertSize(buffers: Buffer[], size: number | undefined): void {
  const given = buffers.reduce((sum, buffer) => sum + buffer.length, 0);
  if (size !== undefined && given !== size) throw new WrongSize(size, String(given));
}
