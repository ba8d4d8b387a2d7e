import { eq, inArray, sql } from 'drizzle-orm';
import type { Database } from '../../shared/database/connect.ts';
import { failedLogins } from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors.ts';
import { FAILED_LOGIN_WINDOW_SECONDS } from '../../shared/failed-login-window.ts';

/** Many accounts may share an address: its limit is so many times that of one account. */
const ADDRESS_FACTOR = 10;

const windowLength = sql`make_interval(secs => ${FAILED_LOGIN_WINDOW_SECONDS})`;
const isCurrent = sql`${failedLogins.began} > now() - ${windowLength}`;

export interface LoginAttempt {
  /** As normalizeAddress() gives it. */
  address: string;
  /** Undefined when it is not a valid name. */
  username: string | undefined;
}

/**
 * Counts failed logins for all API processes, by account and address together, and by address. Not by account alone:
 * otherwise anyone who knows a name could lock its owner out.
 */
export class FailedLogins {
  readonly #database: Database;
  readonly #limit: number;

  /** @param limit failures of one account from one address in 15 minutes; 0: no limit. */
  constructor(database: Database, limit: number) {
    this.#database = database;
    this.#limit = limit;
  }

  /**
   * Counts an attempt as failed before its password is verified, so that concurrent attempts count too; succeed()
   * reverts that. Throws `too_many_requests` above a limit.
   */
  async begin(attempt: LoginAttempt): Promise<void> {
    if (this.#limit === 0) return;
    const { db } = this.#database;
    const limits = this.#limits(attempt);
    const keys = [...limits.keys()];
    // Refused attempts are not counted: this bounds the number of rows for each address.
    const found = await db
      .select({ key: failedLogins.key, failures: failedLogins.failures, left: secondsLeft })
      .from(failedLogins)
      .where(sql`${inArray(failedLogins.key, keys)} and ${isCurrent}`);
    refuse(found.filter(row => row.failures >= (limits.get(row.key) ?? 0)));
    const counted = await db
      .insert(failedLogins)
      // Sorted to avoid deadlocks.
      .values(keys.sort().map(key => ({ key, failures: 1, began: sql`now()` })))
      .onConflictDoUpdate({
        target: failedLogins.key,
        set: {
          failures: sql`case when ${isCurrent} then ${failedLogins.failures} + 1 else 1 end`,
          began: sql`case when ${isCurrent} then ${failedLogins.began} else now() end`,
        },
      })
      .returning({ key: failedLogins.key, failures: failedLogins.failures, left: secondsLeft });
    refuse(counted.filter(row => row.failures > (limits.get(row.key) ?? 0)));
  }

  /** The password was right: clears the account's count, and subtracts one from the address's count. */
  async succeed(attempt: LoginAttempt): Promise<void> {
    if (this.#limit === 0) return;
    const { db } = this.#database;
    const key = accountKey(attempt);
    await db.transaction(async tx => {
      await tx
        .update(failedLogins)
        .set({ failures: sql`greatest(${failedLogins.failures} - 1, 0)` })
        .where(eq(failedLogins.key, attempt.address));
      await tx.delete(failedLogins).where(eq(failedLogins.key, key));
    });
  }

  #limits(attempt: LoginAttempt): Map<string, number> {
    return new Map([
      [attempt.address, this.#limit * ADDRESS_FACTOR],
      [accountKey(attempt), this.#limit],
    ]);
  }
}

const secondsLeft = sql<number>`ceil(extract(epoch from ${failedLogins.began} + ${windowLength} - now()))::int`;

/** Names hold no space, so this key differs from every address. */
const accountKey = ({ address, username }: LoginAttempt) => `${address} ${username ?? ''}`;

function refuse(over: { left: number }[]): void {
  if (over.length === 0) return;
  const seconds = Math.max(1, ...over.map(row => row.left));
  throw new WindlassError('too_many_requests', {
    detail: 'Too many requests: too many logins failed for this account or from this address.',
    hint: `Wait ${Math.ceil(seconds / 60)} minutes. LIMIT_FAILED_LOGINS sets the limit.`,
    headers: { 'Retry-After': String(seconds) },
  });
}
