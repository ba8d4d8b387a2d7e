import { WindlassError } from '../errors.ts';
import type { ObjectStore } from './object-store.ts';

/** What is asked of the store's disk: so many more bytes, and `limit` (LIMIT_FREE_BYTES) free even then; 0 lifts it. */
interface Wanted {
  added: number;
  limit: number;
}

/**
 * Throws `insufficient_storage` where the store's disk would have less than `limit` bytes free with so many more. A store
 * that is a server of its own knows its limits itself.
 */
export async function assertFreeSpace(
  objects: Pick<ObjectStore, 'freeBytes'>,
  wanted: Wanted,
): Promise<void> {
  if (wanted.limit > 0) assertFits(await objects.freeBytes(), wanted);
}

/** The same for so many bytes free, as a store has told them. */
export function assertFits(free: number | undefined, { added, limit }: Wanted): void {
  if (limit === 0 || free === undefined || free - added >= limit) return;
  throw new WindlassError('insufficient_storage', {
    detail: `Insufficient storage: the disk of the object store would have less than ${limit} bytes left.`,
    hint: 'Ask an administrator to free some space. LIMIT_FREE_BYTES sets what must stay free.',
  });
}
