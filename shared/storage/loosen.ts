import type { Tx } from '../database/connect.ts';
import { looseObjects } from '../database/schema.ts';

/**
 * Notes in the caller's transaction that these objects lost a reference, so that upkeep removes them soon after the
 * commit where no other row refers to them. What no transaction ever referred to is found by upkeep itself.
 */
export async function loosenObjects(tx: Tx, objects: (string | null)[]): Promise<void> {
  const keys = [...new Set(objects.filter(key => key !== null))];
  if (keys.length === 0) return;
  await tx
    .insert(looseObjects)
    .values(keys.map(object => ({ object })))
    .onConflictDoNothing();
}
