import { WindlassError } from '../errors/errors.ts';
import type { ObjectStore } from './object-store.ts';

/**
 * Removes what was stored for a transaction that failed with this error. A refusal was certainly rolled back. After
 * other errors the outcome is unknown: garbage collection decides later.
 */
export async function removeIfRolledBack(
  objects: ObjectStore,
  keys: (string | undefined)[],
  error: unknown,
): Promise<void> {
  if (!(error instanceof WindlassError)) return;
  for (const key of keys) if (key !== undefined) await objects.remove(key).catch(() => {});
}
