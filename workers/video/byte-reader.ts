import type { Readable } from 'node:stream';

/** Reads a byte stream up to marks; no more is taken from the stream than was asked for, a chunk aside. */
export class ByteReader {
  readonly #chunks: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(stream: Readable) {
    this.#chunks = stream[Symbol.asyncIterator]();
  }

  /** The next bytes of the stream, as they come; undefined at its end. */
  async read(): Promise<Buffer | undefined> {
    if (this.#rest.length > 0) {
      const bytes = this.#rest;
      this.#rest = Buffer.alloc(0);
      return bytes;
    }
    const { done, value } = await this.#chunks.next();
    return done ? undefined : value;
  }

  /** Exactly so many bytes; throws where the stream ends before. */
  async readExactly(length: number): Promise<Buffer> {
    const bytes = Buffer.allocUnsafe(length);
    let filled = 0;
    while (filled < length) {
      const chunk = await this.read();
      if (!chunk) throw new Error('the stream ended too early');
      const taken = chunk.copy(bytes, filled);
      filled += taken;
      this.#rest = chunk.subarray(taken);
    }
    return bytes;
  }

  /**
   * The bytes before the mark, which is passed over. Past `limit` bytes they are dropped, and
   * `isWhole` is false. Throws where the stream ends before the mark.
   */
  async readUntil(mark: Buffer, limit: number): Promise<{ bytes: Buffer; isWhole: boolean }> {
    const parts: Buffer[] = [];
    let kept = 0;
    let isWhole = true;
    const keep = (bytes: Buffer) => {
      if (kept + bytes.length > limit) {
        isWhole = false;
        parts.length = 0;
      }
      if (!isWhole) return;
      parts.push(bytes);
      kept += bytes.length;
    };
    // A mark may straddle chunks: as many bytes as could begin it are looked at again with the next.
    let tail = Buffer.alloc(0);
    for (;;) {
      const chunk = await this.read();
      if (!chunk) throw new Error('the stream ended too early');
      const bytes = tail.length > 0 ? Buffer.concat([tail, chunk]) : chunk;
      const at = bytes.indexOf(mark);
      if (at >= 0) {
        keep(bytes.subarray(0, at));
        this.#rest = bytes.subarray(at + mark.length);
        return { bytes: Buffer.concat(parts), isWhole };
      }
      const safe = Math.max(0, bytes.length - mark.length + 1);
      keep(bytes.subarray(0, safe));
      tail = Buffer.from(bytes.subarray(safe));
    }
  }
}
