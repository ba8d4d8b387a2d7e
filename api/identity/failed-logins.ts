import { eq, inArray, sql } from 'drizzle-orm';
import type { Database } from '../../shared/database/connect.ts';
import { failedLogins } from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors.ts';
import { FAILED_LOGIN_WINDOW_SECONDS } from '../../shared/failed-login-window.ts';

/** Many accounts may share an address, so it may fail so many times more often than one account from there. */
const ADDRESS_FACTOR = 10;

const windowLength = sql`make_interval(secs => ${FAILED_LOGIN_WINDOW_SECONDS})`;
const isCurrent = sql`${failedLogins.began} > now() - ${windowLength}`;

export interface LoginAttempt {
  /** As normalizeAddress() gives it. */
  address: string;
  /** Undefined for what can be nobody's name. */
  username: string | undefined;
}

/**
 * Counts failed logins for all API processes, by account and address together and by address. Never by account alone:
 * whoever knows a name could lock its owner out everywhere.
 */
export class FailedLogins {
  readonly #database: Database;
  readonly #limit: number;

  /** @param limit for one account from one address within 15 minutes; 0: none. */
  constructor(database: Database, limit: number) {
    this.#database = database;
    this.#limit = limit;
  }

  /**
   * Counts the try as failed before its password is looked at, so that tries at the same time cannot slip through
   * together; succeed() takes it back. Throws `too_many_requests` where there were too many.
   */
  async begin(attempt: LoginAttempt): Promise<void> {
    if (this.#limit === 0) return;
    const { db } = this.#database;
    const limits = this.#limits(attempt);
    const keys = [...limits.keys()];
    // What is refused adds no row and counts nothing: rows cannot grow past the limit of each address.
    const found = await db
      .select({ key: failedLogins.key, failures: failedLogins.failures, left: secondsLeft })
      .from(failedLogins)
      .where(sql`${inArray(failedLogins.key, keys)} and ${isCurrent}`);
    refuse(found.filter(row => row.failures >= (limits.get(row.key) ?? 0)));
    const counted = await db
      .insert(failedLogins)
      // Always in this order, so that no two statements wait for each other.
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

  /** The try was right: the account's failures from there are forgotten, those of the address are one less. */
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

/** No name holds a space: neither key can be taken for the other. */
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
