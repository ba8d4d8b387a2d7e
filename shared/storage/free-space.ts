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

/** The free space of a store's disk, read at most twice a second however many ask. */
export class FreeSpace {
  readonly #objects: Pick<ObjectStore, 'freeBytes'>;
  readonly #limit: number;
  #reading: Promise<number | undefined> | undefined;
  #readAt = 0;

  /** `limit`: LIMIT_FREE_BYTES. */
  constructor(objects: Pick<ObjectStore, 'freeBytes'>, limit: number) {
    this.#objects = objects;
    this.#limit = limit;
  }

  /** Undefined where the store is a server of its own. */
  async read(): Promise<number | undefined> {
    if (this.#reading && performance.now() - this.#readAt < FRESH_MS) return this.#reading;
    this.#readAt = performance.now();
    this.#reading = this.#objects.freeBytes();
    return this.#reading;
  }

  /** Throws `insufficient_storage` where less than the limit is free. */
  async assertFree(): Promise<void> {
    if (this.#limit > 0) assertFits(await this.read(), { added: 0, limit: this.#limit });
  }

  /** One sentence where less than twice the limit is free: what needs space is about to be refused, or is. */
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
    detail: `Insufficient storage: the disk of the object store would have less than ${limit} bytes left.`,
    hint: 'Ask an administrator to free some space. LIMIT_FREE_BYTES sets what must stay free.',
  });
}
