import { createHash, type Hash } from 'node:crypto';
import { Writable } from 'node:stream';
import { WindlassError } from '../../shared/errors/errors.ts';
import { waitForDrain } from '../../shared/process/wait-for-drain.ts';
import type { PartMeter } from '../../shared/uploads/part-meter.ts';
import type { Checksum } from './protocol.ts';

interface AppendOptions {
  /** The most bytes that may come. */
  room: number;
  /** Bytes that become one part. */
  partBytes: number;
  /** The bytes are one part, which is kept only if they match. */
  checksum?: Checksum;
  createMeter(): PartMeter;
  /** Stores what the meter passes on, and makes it visible as the next part; rejects if either fails. */
  store(meter: PartMeter): Promise<void>;
}

/** A part that is being stored. */
interface Part {
  meter: PartMeter;
  /** Bytes that the meter was given. */
  size: number;
  stored: Promise<void>;
}

/** Appends the body of one request to an upload, in parts. Where the body ends early, every byte that came is kept. */
export class AppendSink extends Writable {
  readonly #options: AppendOptions;
  readonly #hash: Hash | undefined;
  #part: Part | undefined;
  #taken = 0;
  /** What is being done with the bytes that came last. */
  #busy: Promise<void> = Promise.resolve();

  constructor(options: AppendOptions) {
    super({ highWaterMark: 1 << 20 });
    this.#options = options;
    this.#hash = options.checksum && createHash(options.checksum.algorithm);
  }

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: (error?: Error) => void): void {
    this.#busy = this.#take(bytes);
    this.#busy.then(() => done(), done);
  }

  override _final(done: (error?: Error) => void): void {
    this.#busy = this.#finish();
    this.#busy.then(() => done(), done);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#keep(error).then(
      () => done(error),
      () => done(error),
    );
  }

  async #take(bytes: Buffer): Promise<void> {
    this.#taken += bytes.length;
    if (this.#taken > this.#options.room) throw tooLong();
    this.#hash?.update(bytes);
    for (let at = 0; at < bytes.length; ) {
      const part = this.#open();
      // Nothing of a body that is checked at its end may be visible before.
      const piece = this.#hash
        ? bytes
        : bytes.subarray(at, at + this.#options.partBytes - part.size);
      at += piece.length;
      part.size += piece.length;
      if (!part.meter.write(piece) && !(await waitForDrain(part.meter))) await part.stored;
      if (!this.#hash && part.size === this.#options.partBytes) await this.#close();
    }
  }

  #open(): Part {
    if (this.#part) return this.#part;
    const meter = this.#options.createMeter();
    const stored = this.#options.store(meter);
    // It is awaited later; until then nobody waits for a meter that is not read any more.
    stored.catch((error: Error) => meter.destroy(error));
    meter.on('error', () => {});
    this.#part = { meter, size: 0, stored };
    return this.#part;
  }

  async #close(): Promise<void> {
    const part = this.#part;
    this.#part = undefined;
    part?.meter.end();
    await part?.stored;
  }

  async #finish(): Promise<void> {
    const { checksum } = this.#options;
    if (checksum && this.#hash?.digest().equals(checksum.digest) === false) throw mismatch();
    // A file without bytes is a part without bytes.
    if (this.#options.room === 0) this.#open();
    await this.#close();
  }

  /** What came is kept, unless it is wrong or can no longer be checked. */
  async #keep(error: Error | null): Promise<void> {
    // A part that is just being stored becomes visible first, and what came after it opens another.
    await this.#busy.catch(() => {});
    const isCut = error instanceof WindlassError && KEPT_AFTER.has(error.code);
    if (isCut && !this.#hash) return this.#close();
    this.#part?.meter.destroy(error ?? undefined);
    await this.#part?.stored;
  }
}

/** The client disconnected, became too slow, or goes on with another request. */
const KEPT_AFTER = new Set(['bad_request', 'request_timeout', 'locked']);

const tooLong = () =>
  new WindlassError('payload_too_large', {
    detail: 'these are more bytes than Upload-Length has left.',
    hint: 'HEAD tells the offset from which to go on.',
  });

const mismatch = () =>
  new WindlassError('checksum_mismatch', {
    detail: 'the bytes of this request do not match Upload-Checksum.',
    hint: 'Send them again. Nothing of them was kept.',
  });
