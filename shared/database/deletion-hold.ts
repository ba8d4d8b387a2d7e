import { sql } from 'drizzle-orm';
import { ADVISORY_LOCKS } from './advisory-locks.ts';
import type { Db } from './connect.ts';

/** Whether a backup copies objects now: then none is deleted, since the rows that it has copied may refer to it. */
export async function areDeletionsHeld(db: Db): Promise<boolean> {
  // The lock is given back with the statement.
  const [row] = await db.execute<{ free: boolean }>(
    sql`select pg_try_advisory_xact_lock_shared(${ADVISORY_LOCKS.deletions}) as free`,
  );
  return row?.free === false;
}
