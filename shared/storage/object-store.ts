import type { Readable } from 'node:stream';

/** A byte range, both ends included, as in RFC 9110's byte ranges. */
export interface ByteRange {
  start: number;
  end: number;
}

export interface StoredObject {
  key: string;
  size: number;
  modified: Date;
}

/**
 * Where videos, output and uploads lie. Keys are slash-separated words of [A-Za-z0-9._-]; a key is written once,
 * by one attempt, and is visible whole or not at all. store-contract.ts holds for every implementation.
 */
export interface ObjectStore {
  /**
   * Stores the bytes under the key and returns how many there were. On any error nothing is visible, and the source is
   * destroyed. Give the `size` where it is known: an object store then takes the stream as it comes, without a buffer;
   * another number of bytes is an error.
   */
  put(
    key: string,
    bytes: Readable | Buffer | Buffer[],
    options?: { size?: number; signal?: AbortSignal },
  ): Promise<number>;
  /** The bytes, or those of the range; throws WindlassError `not_found` before the first byte. */
  get(key: string, options?: { range?: ByteRange; signal?: AbortSignal }): Promise<Readable>;
  /** Size and time, or undefined where there is no such object. */
  stat(key: string): Promise<StoredObject | undefined>;
  /** Removing what is not there is no error. */
  remove(key: string): Promise<void>;
  list(prefix: string): AsyncIterable<StoredObject>;
  /** Removes what writers that died before `before` left unfinished. */
  removeAbandoned(before: Date): Promise<void>;
  /** Bytes free on the disk that this process writes to; undefined where the store is a server of its own. */
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
