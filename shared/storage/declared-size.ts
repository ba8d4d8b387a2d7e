/** Thrown by a put whose source has another number of bytes than was declared. */
export class SizeMismatch extends Error {
  constructor(declared: number, given: string) {
    super(`the source gave ${given} bytes where ${declared} were declared`);
    this.name = 'SizeMismatch';
  }
}

/**
 * Yields the source's bytes; throws SizeMismatch where they are not `size`. Holds the last piece back until the source
 * ends: a server makes the object visible with the last declared byte, and would miss an excess.
 */
export async function* enforceSize(
  size: number,
  source: AsyncIterable<Buffer>,
): AsyncGenerator<Buffer> {
  let seen = 0;
  let last: Buffer | undefined;
  for await (const piece of source) {
    seen += piece.length;
    if (seen > size) throw new SizeMismatch(size, `at least ${seen}`);
    if (last) yield last;
    last = piece;
  }
  if (seen !== size) throw new SizeMismatch(size, `only ${seen}`);
  if (last) yield last;
}

export function assertBuffersSize(buffers: Buffer[], size: number | undefined): void {
  const given = buffers.reduce((sum, buffer) => sum + buffer.length, 0);
  if (size !== undefined && given !== size) throw new SizeMismatch(size, String(given));
}
