/** Reads a stream by numbers of bytes. */
export class ByteReader {
  readonly #pieces: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterable<Buffer>) {
    this.#pieces = source[Symbol.asyncIterator]();
  }

  /** The next `count` bytes, or fewer at the end of the stream. */
  async take(count: number): Promise<Buffer> {
    const parts: Buffer[] = [];
    let missing = count;
    while (missing > 0) {
      if (this.#rest.length === 0) {
        const { value, done } = await this.#pieces.next();
        if (done) break;
        this.#rest = value;
      }
      const part = this.#rest.subarray(0, missing);
      this.#rest = this.#rest.subarray(part.length);
      missing -= part.length;
      parts.push(part);
    }
    return parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts);
  }
}
