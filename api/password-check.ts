import { createHmac, randomBytes } from 'node:crypto';
import { eq } from 'drizzle-orm';
import type { Database } from '../shared/database/connect.ts';
import { users } from '../shared/database/schema.ts';
import { hashPassword, verifyPassword } from '../shared/passwords.ts';

/** Verified passwords that are remembered at most; the oldest goes first. */
const REMEMBERED = 10_000;

/** Anything else is nobody's name, and some of it no text for the database. */
const NAME = /^[\w.@-]{1,64}$/;

export interface User {
  username: string;
  administrator: boolean;
}

/**
 * Checks names and passwords. argon2id is paid once: a verified pair is remembered as an HMAC under a key of this
 * process, bound to the user's version, which every change of the password raises.
 */
export class PasswordCheck {
  readonly #database: Database;
  readonly #key = randomBytes(32);
  readonly #verified = new Map<string, string>();
  readonly #unknown = hashPassword(randomBytes(16).toString('hex'));

  constructor(database: Database) {
    this.#database = database;
  }

  /** The user, or undefined for a wrong password and an unknown name alike, at the same cost. */
  async check(username: string, password: string): Promise<User | undefined> {
    const [row] = NAME.test(username)
      ? await this.#database.db.select().from(users).where(eq(users.username, username))
      : [];
    const mac = row && this.#mac(row.username, row.version, password);
    if (row && mac && this.#verified.get(row.username) === mac) return row;
    const right = await verifyPassword(row?.passwordHash ?? (await this.#unknown), password);
    if (!row || !mac || !right) return undefined;
    this.#remember(row.username, mac);
    return row;
  }

  #mac(username: string, version: number, password: string): string {
    return createHmac('sha256', this.#key)
      .update(JSON.stringify([username, version, password]))
      .digest('base64');
  }

  #remember(username: string, mac: string): void {
    this.#verified.delete(username);
    this.#verified.set(username, mac);
    const oldest = this.#verified.keys().next();
    if (this.#verified.size > REMEMBERED && !oldest.done) this.#verified.delete(oldest.value);
  }
}
