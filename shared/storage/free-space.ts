import { WindlassError } from '../errors.ts';
import type { ObjectStore } from './object-store.ts';

/**
 * Throws `insufficient_storage` where the store's disk would have less than `limit` bytes free with so many more; 0 lifts
 * it. A store that is a server of its own knows its limits itself.
 */
export async function assertFreeSpace(
  objects: ObjectStore,
  { added, limit }: { added: number; limit: number },
): Promise<void> {
  if (limit === 0) return;
  const free = await objects.freeBytes();
  if (free === undefined || free - added >= limit) return;
  throw new WindlassError('insufficient_storage', {
    detail: `Insufficient storage: the disk of the object store would have less than ${limit} bytes left.`,
    hint: 'Ask an administrator to free some space. LIMIT_FREE_BYTES sets what must stay free.',
  });
}
