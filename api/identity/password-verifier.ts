import { createHmac, randomBytes } from 'node:crypto';
import { eq, sql } from 'drizzle-orm';
import { LRUCache } from 'lru-cache';
import type { AuditAction } from '../../shared/audit/audit-actions.ts';
import { USER_COLUMNS, type UserRecord } from '../../shared/database/api-columns.ts';
import type { Database } from '../../shared/database/connect.ts';
import { users } from '../../shared/database/schema.ts';
import { unavailable, WindlassError } from '../../shared/errors/errors.ts';
import { sleep } from '../../shared/process/abort.ts';
import { hashPassword, verifyPassword } from '../../shared/secrets/passwords.ts';
import { FairQueue, type Party } from '../concurrency/fair-queue.ts';
import { Floods, REFUSALS } from '../concurrency/floods.ts';
import { AuditedRefusals } from './audited-refusals.ts';
import { FailedLogins, LockedError, type LoginAttempt } from './failed-logins.ts';

/** Verified passwords that one process remembers, each of an address. */
const MAX_REMEMBERED = 10_000;
/**
 * One hash takes 19 MiB and about 30 ms of one of Node's four threads, which file reads share. Each verification counts as
 * a failed login until it succeeds: few at once keep concurrent right ones from reaching the limit. All places together are
 * a second's work.
 */
const LIMITS = { atOnce: 2, atOncePerAddress: 1, perAccount: 32, perAddress: 32, inAll: 64 };

/** Attempts whose answers are delayed, in one process: of one account many addresses have places, so that its owner has one. */
const DELAYED_LIMITS = {
  atOnce: Number.POSITIVE_INFINITY,
  atOncePerAddress: Number.POSITIVE_INFINITY,
  perAccount: 32,
  perAddress: 8,
  inAll: 1_000,
};

/** Anything else is no user's name, and may not be valid text for the database. */
const USERNAME = /^[\w.@-]{1,64}$/;

export interface User {
  username: string;
  administrator: boolean;
  /** Increments with each change of the password. */
  version: number;
}

interface Pair {
  username: string;
  password: string;
}

interface Remembered {
  passwordHash: string;
  mac: string;
}

export interface PasswordAttempt extends Pair {
  /** As clientAddress() gives it. */
  address: string;
  /** What the audit is told when it is refused. Default: login. */
  action?: AuditAction;
  requestId?: string;
}

/** A user with the hash of the password, which the API's role reads of one name at a time. */
type LoginRow = UserRecord & { passwordHash: string | null };

/**
 * Verifies names and passwords, and hashes new ones: all that costs a hash goes through one bounded queue with shares for
 * accounts and addresses. argon2id runs once for a pair and an address: it is then remembered as an HMAC under a key of this process and
 * bound to the stored hash, so that a changed password or a new user of the name invalidates it. From other addresses it is verified
 * as any other: who guesses there would else be told at once, and as often as they like.
 */
export class PasswordVerifier {
  readonly #database: Database;
  readonly #failed: FailedLogins;
  readonly #refused: AuditedRefusals;
  readonly #floods = new Floods();
  readonly #basicFloods = new Floods();
  readonly #key = randomBytes(32);
  readonly #verified = new LRUCache<string, Remembered>({
    max: MAX_REMEMBERED,
  });
  readonly #underWay = new Map<string, Promise<LoginRow | undefined>>();
  readonly #queue = new FairQueue(LIMITS, tooManyPasswords);
  readonly #delayed = new FairQueue(DELAYED_LIMITS, tooManyDelayed);
  readonly #stopping: AbortSignal;
  readonly #unknown = hashPassword(randomBytes(16).toString('hex'));

  /** @param options.failedLogins LIMIT_FAILED_LOGINS */
  constructor(database: Database, options: { failedLogins: number; stopping: AbortSignal }) {
    this.#database = database;
    this.#failed = new FailedLogins(database, options.failedLogins);
    this.#refused = new AuditedRefusals(database);
    this.#stopping = options.stopping;
  }

  /** Hashes a new password that the party sent. Throws `too_many_requests` when too many wait. */
  hash(password: string, party: Party): Promise<string> {
    return this.#queue.run(party, () => hashPassword(password));
  }

  /**
   * The user, or undefined for a wrong password, a disabled user and an unknown name, at the same cost and as late. Throws `too_many_requests`
   * after too many failures and when too many wait, except for a remembered pair.
   */
  async check(attempt: PasswordAttempt): Promise<User | undefined> {
    const row = await this.#findOrVerify(attempt).catch((error: unknown) => {
      // Whose password waits too long for its turn has guessed none.
      if (error instanceof LockedError) this.#floods.count(attempt.address);
      throw error;
    });
    return row && toUser(row);
  }

  /** As check(), of a pair that was right when its request came. Where it is wrong now nobody guessed: nothing is counted. */
  async checkAgain(attempt: PasswordAttempt): Promise<User | undefined> {
    // Nothing is known of a pair that others have displaced.
    if (!this.#verified.has(placeOf(attempt))) return this.check(attempt);
    const row = await this.#findRemembered(attempt);
    return row && toUser(row);
  }

  /** Whether isFlood() may be true of any attempt. */
  get seesFloods(): boolean {
    return !this.#floods.isEmpty || !this.#basicFloods.isEmpty;
  }

  /** Whether a login from the address is one of a flood, and to be refused before it is looked at; then it is counted. */
  isFlood(address: string): boolean {
    if (!this.#floods.includes(address)) return false;
    this.#floods.count(address);
    this.#tellFlood(address);
    return true;
  }

  /** In the audit: none of its logins is looked at. */
  #tellFlood(address: string): void {
    const told = { key: address, username: undefined, address, requestId: undefined };
    this.#refused.record({ ...told, action: 'login' }).catch(() => {});
  }

  /**
   * The same of a pair that was sent as Basic. One that was right in this process goes on. Programs send theirs again and again: a
   * few are looked at, so that a right one gets in, and a flood of them keeps nobody's login away.
   */
  isBasicFlood(address: string, pair: Pair): boolean {
    const isFlood = this.#floods.includes(address) || this.#basicFloods.includes(address);
    const isKnown = isFlood && this.#rememberedHash({ ...pair, address }) !== undefined;
    if (!isFlood || isKnown || this.#basicFloods.pass(address)) return false;
    this.#basicFloods.count(address);
    return true;
  }

  async #findOrVerify(attempt: PasswordAttempt): Promise<LoginRow | undefined> {
    const remembered = await this.#findRemembered(attempt);
    if (remembered) return remembered;
    // Concurrent requests with the same pair are one attempt.
    const key = `${attempt.address} ${this.#mac('', attempt)}`;
    let verifying = this.#underWay.get(key);
    if (!verifying) {
      verifying = this.#verifyAudited(attempt).finally(() => this.#underWay.delete(key));
      this.#underWay.set(key, verifying);
    }
    return verifying;
  }

  /** The user whose pair is remembered. A wrong password costs no query. */
  async #findRemembered(attempt: PasswordAttempt): Promise<LoginRow | undefined> {
    const passwordHash = this.#rememberedHash(attempt);
    if (passwordHash === undefined) return undefined;
    const row = await this.#findUser(attempt.username);
    return row?.passwordHash === passwordHash && !row.disabled ? row : undefined;
  }

  /** The hash for which the pair was right from this address. */
  #rememberedHash(pair: Pair & { address: string }): string | undefined {
    const known = this.#verified.get(placeOf(pair));
    if (!known) return undefined;
    return this.#mac(known.passwordHash, pair) === known.mac ? known.passwordHash : undefined;
  }

  #remember(passwordHash: string, pair: Pair & { address: string }): void {
    this.#verified.set(placeOf(pair), { passwordHash, mac: this.#mac(passwordHash, pair) });
  }

  /** Tells the audit of what is refused: a wrong password, and a lock. */
  async #verifyAudited(attempt: PasswordAttempt): Promise<LoginRow | undefined> {
    const { username, address, action = 'login', requestId } = attempt;
    const login = { address, username: USERNAME.test(username) ? username : undefined };
    const refuse = () =>
      this.#refused.record({ ...login, key: this.#failed.refusalKey(login), action, requestId });
    const row = await this.#verify(attempt, login).catch(async (error: unknown) => {
      if (error instanceof LockedError) await refuse();
      throw error;
    });
    if (!row) await refuse();
    return row;
  }

  async #verify(attempt: PasswordAttempt, login: LoginAttempt): Promise<LoginRow | undefined> {
    const { password, address } = attempt;
    const party = { address, account: login.username ?? '' };
    this.#failed.refuseSeen(login);
    const delay = await this.#queue.hold(party, () => this.#failed.look(login));
    if (delay > 0) await this.#delayed.hold(party, () => this.#wait(delay));
    return this.#queue.run(party, async () => {
      await this.#failed.begin(login);
      // Not earlier: the password may have been changed while the attempt waited.
      const row = login.username ? await this.#findUser(login.username) : undefined;
      const hash = row?.passwordHash ?? (await this.#unknown);
      if (!(await verifyPassword(hash, password)) || !row?.passwordHash || row.disabled)
        return undefined;
      await this.#failed.succeed(login);
      this.#remember(hash, attempt);
      return row;
    });
  }

  async #wait(ms: number): Promise<void> {
    await sleep(this.#stopping, ms);
    if (this.#stopping.aborted)
      throw unavailable('this process is stopping.', 'Try again in a few seconds.', 2);
  }

  async #findUser(username: string): Promise<LoginRow | undefined> {
    const passwordHash = sql<string | null>`password_hash_of(${users.username})`;
    const [row] = await this.#database.db
      .select({ ...USER_COLUMNS, passwordHash })
      .from(users)
      .where(eq(users.username, username));
    return row;
  }

  #mac(passwordHash: string, { username, password }: Pair): string {
    return createHmac('sha256', this.#key)
      .update(JSON.stringify([passwordHash, username, password]))
      .digest('base64');
  }
}

/** No user's name has a space. */
const placeOf = ({ username, address }: { username: string; address: string }) =>
  `${username} ${address}`;

const toUser = ({ username, administrator, version }: LoginRow): User => ({
  username,
  administrator,
  version,
});

const tooManyPasswords = () =>
  new WindlassError('too_many_requests', {
    detail:
      'Too many requests: too many passwords wait for this account, for this address or in all.',
    hint: 'Wait a second, and send one at a time.',
    headers: { 'Retry-After': '1' },
  });

const tooManyDelayed = () =>
  new WindlassError('too_many_requests', {
    detail:
      'Too many requests: too many logins of this account failed, and others wait for their delayed answers.',
    hint: 'Wait half a minute. Cookies, tokens and a password that was right from this address before are not delayed.',
    headers: { 'Retry-After': '30' },
  });

export const tooManyRefused = () =>
  new WindlassError('too_many_requests', {
    detail: `Too many requests: more than ${REFUSALS} passwords a second from this address are refused.`,
    hint: 'Wait two seconds, and send one at a time.',
    headers: { 'Retry-After': '2' },
  });
