import { type SQLWrapper, sql } from 'drizzle-orm';
import { ADVISORY_LOCKS } from '../database/advisory-locks.ts';
import type { Tx } from '../database/connect.ts';
import { storageChanges, userStorage } from '../database/schema.ts';
import { WindlassError } from '../errors/errors.ts';

/** Bytes that are about to be stored for a user. */
interface UserCharge {
  user: string;
  /** Bytes that no row has yet. */
  added: number;
  /** LIMIT_USER_BYTES. */
  limit: number;
}

/**
 * SQL for the bytes that a user stores: what was counted, and what has changed until this statement. Not until now(),
 * when this transaction began: one that began later may have committed first.
 */
export const storedBytes = (user: SQLWrapper) =>
  sql<number>`greatest(0,
    coalesce((select bytes from ${userStorage} where owner = ${user}), 0)
    + coalesce((select sum(bytes) from ${storageChanges} where owner = ${user} and due <= statement_timestamp()), 0)
  )::float8`;

/** Throws `insufficient_storage` where the user would store more than the limit. A check without locks. */
export async function assertUserStorage(db: Tx, { user, added, limit }: UserCharge): Promise<void> {
  if (limit === 0) return;
  const [row] = await db.execute<{ bytes: number }>(
    sql`select ${storedBytes(sql`${user}`)} as bytes`,
  );
  if ((row?.bytes ?? 0) + added <= limit) return;
  throw new WindlassError('insufficient_storage', {
    detail: `${user} would store more than ${limit} bytes.`,
    hint: 'Remove records of jobs, uploads, artifacts or models, cached videos or bookmarks that you stored. LIMIT_USER_BYTES sets the limit.',
  });
}

/**
 * Like assertUserStorage(), in the transaction of the write: of two concurrent writers the second counts the bytes of the
 * first. Rows that this transaction has written count already. Call it last, like chargeProjectQuota().
 */
export async function chargeUserStorage(tx: Tx, charge: UserCharge): Promise<void> {
  if (charge.limit === 0) return;
  await tx.execute(
    sql`select pg_advisory_xact_lock(${ADVISORY_LOCKS.userStorage}, hashtext(${charge.user}))`,
  );
  await assertUserStorage(tx, charge);
}
