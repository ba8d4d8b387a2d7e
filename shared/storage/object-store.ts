import type { Readable } from 'node:stream';
import { WindlassError } from '../errors/errors.ts';

/** A byte range, both ends included, as in RFC 9110's byte ranges. */
export interface ByteRange {
  start: number;
  end: number;
}

export type ObjectSource = Readable | Buffer | Buffer[];
export type PutOptions = { size?: number; signal?: AbortSignal };
export type GetOptions = { range?: ByteRange; signal?: AbortSignal };

export interface StoredObject {
  key: string;
  size: number;
  modified: Date;
  /** The entity tag with which the store itself sends the bytes, where it does. */
  tag?: string;
}

/**
 * The store has no such object. Where a row refers to it, that is a loss only in the store of this database: see
 * explainMissingObject().
 */
export class MissingObject extends WindlassError {
  constructor(options: { detail?: string; hint?: string; cause?: unknown } = {}) {
    super('not_found', { detail: 'There is no such object.', ...options });
  }
}

export interface AddressOptions {
  type: string;
  /** Content-Disposition of what is sent there. */
  disposition: string;
  seconds: number;
}

/**
 * Stores videos, output and uploads. A key is slash-separated words of [A-Za-z0-9._-]; it is written once, by one attempt,
 * and its object is visible whole or not at all. Every implementation passes test/harness/files/store-contract.ts.
 */
export interface ObjectStore {
  /**
   * Stores the bytes and returns their number. On any error nothing is visible, and the source is destroyed. Declare
   * the `size` where it is known: S3 then needs no buffer. Throws SizeMismatch where the source has another number of
   * bytes.
   */
  put(key: string, bytes: ObjectSource, options?: PutOptions): Promise<number>;
  /** Returns the bytes, or those of the range. Throws MissingObject before the first byte. */
  get(key: string, options?: GetOptions): Promise<Readable>;
  /**
   * Fills the buffer with the object's bytes from `start` on. Only in stores where this is faster than a stream. Throws
   * as get() does, and where the object has fewer.
   */
  read?(key: string, into: Buffer, start: number): Promise<void>;
  /** Undefined where there is no such object. */
  stat(key: string): Promise<StoredObject | undefined>;
  /**
   * An address at which anybody gets the bytes, or a range of them, for so many seconds. Only where the store is a server
   * that clients reach.
   */
  addressOf?(key: string, options: AddressOptions): Promise<string>;
  /** Does nothing where there is no such object. */
  remove(key: string): Promise<void>;
  list(prefix: string): AsyncIterable<StoredObject>;
  /** Removes unfinished writes that began before `before`: their writers are dead. */
  removeAbandonedWrites(before: Date): Promise<void>;
  /** Free bytes on the disk that this process writes to; undefined where the store is a server of its own. */
  freeBytes(): Promise<number | undefined>;
  /** Throws WindlassError `unavailable` when the store cannot be used now. */
  check(): Promise<void>;
}

export function assertKey(key: string): void {
  if (
    key.length > 900 ||
    !/^[\w.-]+(\/[\w.-]+)*$/.test(key) ||
    key.split('/').some(word => /^\.+$/.test(word))
  ) {
    throw new Error(`bad object key: ${JSON.stringify(key)}`);
  }
}
