import { setTimeout as delay } from 'node:timers/promises';
import { WindlassError } from '../errors/errors.ts';
import type { ObjectStore } from './object-store.ts';

/** `added` more bytes must leave `limit` bytes (LIMIT_FREE_BYTES) free on the store's disk; 0 is no limit. */
interface SpaceNeeded {
  added: number;
  limit: number;
}

/**
 * Throws `insufficient_storage` where `added` more bytes would leave less than `limit` free. Never throws for a store that
 * is a server of its own, which enforces its limits itself.
 */
export async function assertFreeSpace(
  objects: Pick<ObjectStore, 'freeBytes'>,
  needed: SpaceNeeded,
): Promise<void> {
  if (needed.limit > 0) assertFits(await objects.freeBytes(), needed);
}

/** Readings of the free space are used for so long. */
const FRESH_MS = 500;
/** A reading that takes longer, as on a disk that hangs, is not waited for. */
const LATE_MS = 500;

/** The free space of a store's disk, read at most twice a second however many ask. */
export class FreeSpace {
  readonly #objects: Pick<ObjectStore, 'freeBytes'>;
  readonly #limit: number;
  #reading: Promise<number | undefined> | undefined;
  #isReading = false;
  #readAt = 0;
  #last: number | undefined;

  /** `limit`: LIMIT_FREE_BYTES. */
  constructor(objects: Pick<ObjectStore, 'freeBytes'>, limit: number) {
    this.#objects = objects;
    this.#limit = limit;
  }

  /**
   * The free bytes; undefined where the store is a server of its own. While the disk hangs, what it said last: callers
   * may hold a connection of the database, and another reading would block another thread.
   */
  async read(): Promise<number | undefined> {
    const age = performance.now() - this.#readAt;
    if (!this.#reading || (!this.#isReading && age >= FRESH_MS)) this.#reading = this.#begin();
    if (!this.#isReading) return this.#reading;
    const patience = new AbortController();
    const wait = Math.max(0, this.#readAt + LATE_MS - performance.now());
    const late = delay(wait, undefined, { signal: patience.signal, ref: false }).then(
      () => this.#last,
      () => undefined,
    );
    return Promise.race([this.#reading, late]).finally(() => patience.abort());
  }

  async #begin(): Promise<number | undefined> {
    this.#readAt = performance.now();
    this.#isReading = true;
    try {
      this.#last = await this.#objects.freeBytes();
      return this.#last;
    } finally {
      this.#isReading = false;
    }
  }

  /** Throws `insufficient_storage` where less than the limit is free. */
  async assertFree(): Promise<void> {
    if (this.#limit > 0) assertFits(await this.read(), { added: 0, limit: this.#limit });
  }

  /** One sentence where less than twice the limit is free: uploads are refused, or soon will be. */
  async describeShortage(): Promise<string | undefined> {
    if (this.#limit === 0) return undefined;
    const free = await this.read();
    if (free === undefined || free >= 2 * this.#limit) return undefined;
    return `The disk of the object store has ${free} bytes left; below ${this.#limit} (LIMIT_FREE_BYTES) nothing more is stored.`;
  }
}

/** assertFreeSpace() for `free` bytes, as ObjectStore.freeBytes() returned them. */
export function assertFits(free: number | undefined, { added, limit }: SpaceNeeded): void {
  if (limit === 0 || free === undefined || free - added >= limit) return;
  throw new WindlassError('insufficient_storage', {
    detail: `the disk of the object store would have less than ${limit} bytes left.`,
    hint: 'Ask an administrator to free some space. LIMIT_FREE_BYTES sets what must stay free.',
  });
}
