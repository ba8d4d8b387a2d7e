import type { Readable } from 'node:stream';

/** Reads a byte stream up to marks; no more is taken from the stream than was asked for, a chunk aside. */
export class ByteReader {
  readonly #stream: Readable;
  readonly #chunks: AsyncIterator<Buffer>;
  readonly #signal: AbortSignal | undefined;
  #rest: Buffer = Buffer.alloc(0);
  #giveUp: ((reason: unknown) => void) | undefined;

  /** The signal ends a wait at once, also where the stream itself would not: over SSH its end comes from the host. */
  constructor(stream: Readable, signal?: AbortSignal) {
    this.#stream = stream;
    this.#chunks = stream.iterator({ destroyOnReturn: false });
    this.#signal = signal;
    signal?.addEventListener('abort', this.#onAbort, { once: true });
  }

  readonly #onAbort = () => this.#giveUp?.(this.#signal?.reason);

  /** The next bytes of the stream, as they come; undefined at its end. Throws the signal's reason. */
  async read(): Promise<Buffer | undefined> {
    this.#signal?.throwIfAborted();
    if (this.#rest.length > 0) {
      const bytes = this.#rest;
      this.#rest = Buffer.alloc(0);
      return bytes;
    }
    // Not Promise.race: it would hold every chunk for as long as the signal lives.
    const { done, value } = await new Promise<IteratorResult<Buffer>>((resolve, reject) => {
      this.#giveUp = reject;
      this.#chunks.next().then(resolve, reject);
    });
    return done ? undefined : value;
  }

  /**
   * Destroys the stream and drops what it still brings: an ssh2 channel closes, and gives its place
   * free, only when everything that it received has been read.
   */
  close(): void {
    this.#signal?.removeEventListener('abort', this.#onAbort);
    this.#stream.on('error', () => undefined);
    this.#stream.destroy();
    const detached = this.#chunks.return?.() ?? Promise.resolve();
    // Only once the iterator's listener is forgotten, a tick after it was removed: until then resume() starts nothing.
    detached.catch(() => undefined).finally(() => setImmediate(() => this.#stream.resume()));
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
