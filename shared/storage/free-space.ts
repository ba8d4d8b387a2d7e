import { WindlassError } from '../errors.ts';
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

/** The same for `free` bytes, as ObjectStore.freeBytes() returned them. */
export function assertFits(free: number | undefined, { added, limit }: SpaceNeeded): void {
  if (limit === 0 || free === undefined || free - added >= limit) return;
  throw new WindlassError('insufficient_storage', {
    detail: `Insufficient storage: the disk of the object store would have less than ${limit} bytes left.`,
    hint: 'Ask an administrator to free some space. LIMIT_FREE_BYTES sets what must stay free.',
  });
}
