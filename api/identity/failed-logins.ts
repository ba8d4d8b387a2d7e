import { and, eq, inArray, sql } from 'drizzle-orm';
import { LRUCache } from 'lru-cache';
import type { Database, Tx } from '../../shared/database/connect.ts';
import { isCurrent, secondsLeft } from '../../shared/database/failed-login-window.ts';
import { failedLogins } from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors/errors.ts';

/** Many accounts may share an address: its limit is that of one account times this factor. */
const ADDRESS_FACTOR = 10;
/** From this failed login of an account on, over all addresses, answers to its passwords come later. */
const FIRST_DELAYED = 5;
/** The first delay; each further failure doubles it. */
const FIRST_DELAY_MS = 1_000;
const LONGEST_DELAY_MS = 30_000;
/** Time in which a lock that was seen is not looked up again: a flood of attempts costs no queries. */
const LOCK_TTL_MS = 1_000;
const MAX_LOCKS = 10_000;

export interface LoginAttempt {
  /** As normalizeAddress() gives it. */
  address: string;
  /** Undefined when it is not a valid name. */
  username: string | undefined;
}

/**
 * Counts failed logins for all API processes. By address, and by account and address together, they lock; by account
 * alone they only delay: otherwise anyone who knows a name could lock its owner out (decision 8).
 */
export class FailedLogins {
  readonly #database: Database;
  readonly #limit: number;
  /** Until when each key is locked, in seconds of performance.now(). */
  readonly #seen = new LRUCache<string, number>({ max: MAX_LOCKS, ttl: LOCK_TTL_MS });

  /** @param limit failures of one account from one address in 15 minutes; 0: no limit. */
  constructor(database: Database, limit: number) {
    this.#database = database;
    this.#limit = limit;
  }

  /**
   * Throws `too_many_requests` when a limit was reached; else returns by how many ms the answer must be delayed. Call
   * it before taking a turn: a locked client needs none.
   */
  async look(attempt: LoginAttempt): Promise<number> {
    if (this.#limit === 0) return 0;
    const limits = this.#limits(attempt);
    const found = await this.#database.db
      .select({ key: failedLogins.key, failures: failedLogins.failures, left: secondsLeft })
      .from(failedLogins)
      .where(sql`${inArray(failedLogins.key, [...limits.keys()])} and ${isCurrent}`);
    this.#refuse(found.filter(({ key, failures }) => failures >= (limits.get(key) ?? 0)));
    return delayAfter(found.find(({ key }) => key === accountKey(attempt))?.failures ?? 0);
  }

  /** Does what look() does for locks that were seen within a second, without a query. */
  refuseSeen(attempt: LoginAttempt): void {
    if (this.#seen.size === 0) return;
    for (const key of this.#limits(attempt).keys()) {
      const seen = this.#seen.get(key);
      if (seen) throw new LockedError(seen);
    }
  }

  /**
   * Counts an attempt as failed before its password is verified, so that concurrent attempts count too; succeed()
   * reverts that. Throws `too_many_requests` above a limit.
   */
  async begin(attempt: LoginAttempt): Promise<void> {
    if (this.#limit === 0) return;
    const limits = this.#limits(attempt);
    const counted = await this.#database.db
      .insert(failedLogins)
      // Sorted to avoid deadlocks.
      .values([...limits.keys()].sort().map(key => ({ key, failures: 1, began: sql`now()` })))
      .onConflictDoUpdate({
        target: failedLogins.key,
        set: {
          failures: sql`case when ${isCurrent} then ${failedLogins.failures} + 1 else 1 end`,
          began: sql`case when ${isCurrent} and ${failedLogins.key} <> ${accountKey(attempt)} then ${failedLogins.began} else now() end`,
        },
      })
      .returning({ key: failedLogins.key, failures: failedLogins.failures, left: secondsLeft });
    this.#refuse(counted.filter(row => row.failures > (limits.get(row.key) ?? 0)));
  }

  /** The password was right: clears the account's counts, and subtracts one from the address's count. */
  async succeed(attempt: LoginAttempt): Promise<void> {
    if (this.#limit === 0) return;
    const { db } = this.#database;
    const cleared = [accountKey(attempt), bothKey(attempt)];
    await db.transaction(async tx => {
      // begin() of another process locks them in the same order. What it adds after this look is of its own attempt.
      const locked = await tx
        .select({ key: failedLogins.key })
        .from(failedLogins)
        .where(inArray(failedLogins.key, [attempt.address, ...cleared]))
        .orderBy(sql`${failedLogins.key} collate "C"`)
        .for('update');
      const keys = locked.map(({ key }) => key);
      await tx
        .update(failedLogins)
        .set({ failures: sql`greatest(${failedLogins.failures} - 1, 0)` })
        .where(and(eq(failedLogins.key, attempt.address), inArray(failedLogins.key, keys)));
      await tx
        .delete(failedLogins)
        .where(and(inArray(failedLogins.key, cleared), inArray(failedLogins.key, keys)));
    });
  }

  #refuse(over: { key: string; left: number }[]): void {
    const now = performance.now() / 1_000;
    for (const { key, left } of over) this.#seen.set(key, now + left);
    if (over.length > 0) throw new LockedError(now + Math.max(...over.map(row => row.left)));
  }

  /** What the audit counts a refusal for: a locked address, not each name that it tries. */
  refusalKey(attempt: LoginAttempt): string {
    return this.#seen.has(attempt.address) ? attempt.address : bothKey(attempt);
  }

  #limits(attempt: LoginAttempt): Map<string, number> {
    return new Map([
      [attempt.address, this.#limit * ADDRESS_FACTOR],
      [bothKey(attempt), this.#limit],
      [accountKey(attempt), Number.POSITIVE_INFINITY],
    ]);
  }
}

/** For a user who was given a new password: the failures before were with another one. */
export async function forgetFailedLogins(tx: Tx, username: string): Promise<void> {
  const ofUser = sql`split_part(${failedLogins.key}, ' ', 2) = ${username}`;
  const locked = await tx
    .select({ key: failedLogins.key })
    .from(failedLogins)
    .where(ofUser)
    // As succeed() does.
    .orderBy(sql`${failedLogins.key} collate "C"`)
    .for('update');
  const keys = locked.map(({ key }) => key);
  if (keys.length > 0) await tx.delete(failedLogins).where(inArray(failedLogins.key, keys));
}

/** Names hold no space, so these keys differ from every address. */
const bothKey = ({ address, username }: LoginAttempt) => `${address} ${username ?? ''}`;
/** Its window begins anew with each failure: the delay ends when nobody has guessed for a window. */
const accountKey = ({ username }: LoginAttempt) => `* ${username ?? ''}`;

function delayAfter(failures: number): number {
  const doublings = failures + 1 - FIRST_DELAYED;
  return doublings < 0 ? 0 : Math.min(FIRST_DELAY_MS * 2 ** doublings, LONGEST_DELAY_MS);
}

/** An account is locked for an address, or an address for all. */
export class LockedError extends WindlassError {
  /** @param until in seconds of performance.now() */
  constructor(until: number) {
    const seconds = Math.max(1, Math.ceil(until - performance.now() / 1_000));
    super('too_many_requests', {
      detail: 'too many logins failed for this account or from this address.',
      hint: `Wait ${Math.ceil(seconds / 60)} minutes. LIMIT_FAILED_LOGINS sets the limit.`,
      headers: { 'Retry-After': String(seconds) },
    });
  }
}
