import { sql } from 'drizzle-orm';
import { ADVISORY_LOCKS } from './advisory-locks.ts';
import type { Tx } from './connect.ts';

/** Whether the transaction has the lock now, until its end: false where another one has it. */
export async function tryLock(tx: Tx, name: keyof typeof ADVISORY_LOCKS): Promise<boolean> {
  const [lock] = await tx.execute<{ mine: boolean }>(
    sql`select pg_try_advisory_xact_lock(${ADVISORY_LOCKS[name]}) as mine`,
  );
  return lock?.mine === true;
}
