import { createHmac, randomBytes } from 'node:crypto';
import { eq } from 'drizzle-orm';
import { LRUCache } from 'lru-cache';
import type { Database } from '../../shared/database/connect.ts';
import { users } from '../../shared/database/schema.ts';
import { hashPassword, verifyPassword } from '../../shared/passwords.ts';
import { Semaphore } from '../concurrency/semaphore.ts';
import { FailedLogins } from './failed-logins.ts';

/** Verified passwords that one process remembers. */
const MAX_REMEMBERED = 10_000;
/**
 * One verification takes 19 MiB and about 30 ms of one of Node's four threads, which file reads share. Each counts as a
 * failed login until it succeeds: few at once keep concurrent right ones from reaching the limit.
 */
const MAX_CONCURRENT = 2;

/** Anything else is no user's name, and may not be valid text for the database. */
const USERNAME = /^[\w.@-]{1,64}$/;

export interface User {
  username: string;
  administrator: boolean;
  /** Increments with each change of the password. */
  version: number;
}

export interface PasswordAttempt {
  username: string;
  password: string;
  /** As clientAddress() gives it. */
  address: string;
}

type UserRow = typeof users.$inferSelect;

/**
 * Verifies names and passwords. argon2id runs once for a pair: it is then remembered as an HMAC under a key of this
 * process and bound to the stored hash, so that a changed password or a new user of the name invalidates it.
 */
export class PasswordVerifier {
  readonly #database: Database;
  readonly #failed: FailedLogins;
  readonly #key = randomBytes(32);
  readonly #verified = new LRUCache<string, string>({ max: MAX_REMEMBERED });
  readonly #underWay = new Map<string, Promise<boolean>>();
  readonly #semaphore = new Semaphore(MAX_CONCURRENT);
  readonly #unknown = hashPassword(randomBytes(16).toString('hex'));

  /** @param failedLogins LIMIT_FAILED_LOGINS */
  constructor(database: Database, failedLogins: number) {
    this.#database = database;
    this.#failed = new FailedLogins(database, failedLogins);
  }

  /**
   * The user, or undefined for a wrong password and for an unknown name, at the same cost. Throws `too_many_requests`
   * after too many failures, except for a remembered pair.
   */
  async check({ username, password, address }: PasswordAttempt): Promise<User | undefined> {
    const isName = USERNAME.test(username);
    const [row] = isName
      ? await this.#database.db.select().from(users).where(eq(users.username, username))
      : [];
    const mac = this.#mac(row?.passwordHash ?? '', username, password);
    if (row && this.#verified.get(row.username) === mac) return toUser(row);
    // Concurrent requests with the same pair are one attempt.
    const key = `${address} ${mac}`;
    let verifying = this.#underWay.get(key);
    if (!verifying) {
      const attempt = { address, username: isName ? username : undefined };
      verifying = this.#semaphore
        .run(async () => {
          await this.#failed.begin(attempt);
          const hash = row?.passwordHash ?? (await this.#unknown);
          const right = (await verifyPassword(hash, password)) && row !== undefined;
          if (right) await this.#failed.succeed(attempt);
          return right;
        })
        .finally(() => this.#underWay.delete(key));
      this.#underWay.set(key, verifying);
    }
    if (!(await verifying) || !row) return undefined;
    this.#verified.set(row.username, mac);
    return toUser(row);
  }

  #mac(passwordHash: string, username: string, password: string): string {
    return createHmac('sha256', this.#key)
      .update(JSON.stringify([passwordHash, username, password]))
      .digest('base64');
  }
}

const toUser = ({ username, administrator, version }: UserRow): User => ({
  username,
  administrator,
  version,
});
