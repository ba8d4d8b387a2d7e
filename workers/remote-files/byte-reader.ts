import type { Readable } from 'node:stream';

interface Silence {
  /** How long a read waits for bytes. */
  ms: number;
  toError(): Error;
}

/** Pieces that are kept apart: each takes some 200 bytes beside its own. */
const MAX_PARTS = 4_096;

/** Reads a byte stream by length or up to a mark, at most one chunk ahead; node:stream has no reads by delimiter. */
export class ByteReader {
  readonly #stream: Readable;
  readonly #chunks: AsyncIterator<Buffer>;
  readonly #signal: AbortSignal | undefined;
  readonly #silence: Silence | undefined;
  #rest: Buffer = Buffer.alloc(0);
  #abort: ((reason: unknown) => void) | undefined;

  /** The signal ends a pending read at once. Destroying an SSH stream may not, because the host must close it. */
  constructor(stream: Readable, signal?: AbortSignal, silence?: Silence) {
    this.#stream = stream;
    this.#chunks = stream.iterator({ destroyOnReturn: false });
    this.#signal = signal;
    this.#silence = silence;
    signal?.addEventListener('abort', this.#onAbort, { once: true });
  }

  readonly #onAbort = () => this.#abort?.(this.#signal?.reason);

  /** The next bytes of the stream, as they arrive; undefined at its end. Throws the signal's reason. */
  async read(): Promise<Buffer | undefined> {
    this.#signal?.throwIfAborted();
    if (this.#rest.length > 0) {
      const bytes = this.#rest;
      this.#rest = Buffer.alloc(0);
      return bytes;
    }
    let timer: NodeJS.Timeout | undefined;
    // Not Promise.race(), which would retain every chunk as long as the signal exists.
    const { done, value } = await new Promise<IteratorResult<Buffer>>((resolve, reject) => {
      this.#abort = reject;
      const silence = this.#silence;
      if (silence) timer = setTimeout(() => reject(silence.toError()), silence.ms).unref();
      this.#chunks.next().then(resolve, reject);
    }).finally(() => clearTimeout(timer));
    return done ? undefined : value;
  }

  /**
   * Destroys the stream and discards the rest: an ssh2 channel closes, and frees its slot, only when all received bytes
   * were read.
   */
  close(): void {
    this.#signal?.removeEventListener('abort', this.#onAbort);
    this.#stream.on('error', () => undefined);
    this.#stream.destroy();
    const detached = this.#chunks.return?.() ?? Promise.resolve();
    // resume() has no effect until one tick after the iterator has removed its listener.
    detached.catch(() => undefined).finally(() => setImmediate(() => this.#stream.resume()));
  }

  /** Reads exactly so many bytes; throws if the stream ends before. */
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
   * Reads up to the mark and skips it. If more than `limit` bytes precede it, drops them and sets `isWhole` to false.
   * Throws if the stream ends before the mark.
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
      if (!isWhole || bytes.length === 0) return;
      parts.push(bytes);
      kept += bytes.length;
      if (parts.length === MAX_PARTS) parts.splice(0, MAX_PARTS, Buffer.concat(parts));
    };
    // A mark may be split over chunks: bytes that may begin it are kept for the next search.
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
