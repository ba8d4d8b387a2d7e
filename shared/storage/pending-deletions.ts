import { sql } from 'drizzle-orm';
import type { Tx } from '../database/connect.ts';
import { pendingDeletions } from '../database/schema.ts';

/** Stays below the number of parameters that a statement can have, 65,535. */
const BATCH = 5_000;

/**
 * Records in the caller's transaction that these objects lost a reference: upkeep deletes them after the commit, unless
 * another row refers to them. Objects that no row ever referred to it finds by itself (decision 9).
 */
export async function scheduleDeletion(tx: Tx, objects: (string | null)[]): Promise<void> {
  // Sorted to avoid deadlocks.
  const keys = [...new Set(objects.filter(key => key !== null))].sort();
  for (let at = 0; at < keys.length; at += BATCH) {
    await tx
      .insert(pendingDeletions)
      .values(keys.slice(at, at + BATCH).map(object => ({ object })))
      .onConflictDoUpdate({
        target: pendingDeletions.object,
        // A new time tells upkeep, if it is deleting this object now, that its check of the references is out of date.
        set: { due: sql`clock_timestamp()` },
      });
  }
}
