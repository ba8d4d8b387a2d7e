import { sql } from 'drizzle-orm';
import type { Tx } from '../database/connect.ts';
import { pendingDeletions } from '../database/schema.ts';

/** A statement takes a limited number of values. */
const BATCH = 5_000;

/**
 * Notes in the caller's transaction that these objects lost a reference, so that upkeep removes them soon after the
 * commit where no other row refers to them. What no transaction ever referred to is found by upkeep itself.
 */
export async function scheduleDeletion(tx: Tx, objects: (string | null)[]): Promise<void> {
  // In one order for all, so that two transactions never wait for each other.
  const keys = [...new Set(objects.filter(key => key !== null))].sort();
  for (let at = 0; at < keys.length; at += BATCH) {
    await tx
      .insert(pendingDeletions)
      .values(keys.slice(at, at + BATCH).map(object => ({ object })))
      .onConflictDoUpdate({
        target: pendingDeletions.object,
        // Another time than the one that upkeep may just have read: what it saw then is no longer so.
        set: { due: sql`clock_timestamp()` },
      });
  }
}
