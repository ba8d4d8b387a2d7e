import { createHash } from 'node:crypto';
import { Transform, type TransformCallback } from 'node:stream';
import { WindlassError } from '../errors/errors.ts';
import { MAX_PART_BYTES } from '../settings/limits.ts';

/**
 * Passes bytes on into the store, counting and hashing them (SHA-256). Fails before its end when there are too many bytes
 * or the digest is not `expected`, so that the store keeps nothing.
 */
export class PartMeter extends Transform {
  readonly #hash = createHash('sha256');
  readonly #limit: number;
  readonly #expected: Buffer | undefined;
  #digest = '';
  /** Bytes so far. */
  size = 0;

  constructor({ limit = MAX_PART_BYTES, expected }: { limit?: number; expected?: Buffer } = {}) {
    super();
    this.#limit = limit;
    this.#expected = expected;
  }

  /** In base64; known at the end. */
  get digest(): string {
    return this.#digest;
  }

  override _transform(bytes: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.size += bytes.length;
    if (this.size > this.#limit) {
      done(partTooLarge(this.#limit));
      return;
    }
    this.#hash.update(bytes);
    done(null, bytes);
  }

  override _flush(done: TransformCallback): void {
    const digest = this.#hash.digest();
    this.#digest = digest.toString('base64');
    const isOther = this.#expected?.equals(digest) === false;
    done(isOther ? this.#mismatch() : null);
  }

  #mismatch(): WindlassError {
    return new WindlassError('digest_mismatch', {
      detail: `what arrived has sha-256=:${this.#digest}:, ${this.size} bytes.`,
      hint: 'Send the part again. Nothing was stored.',
    });
  }
}

export function partTooLarge(limit: number): WindlassError {
  return new WindlassError('payload_too_large', {
    detail: `a part may have ${limit} bytes.`,
    hint: `Split the file into more parts. LIMIT_PART_BYTES (${limit}) sets the limit.`,
  });
}
