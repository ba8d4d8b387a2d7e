import { randomBytes } from 'node:crypto';
import { availableParallelism } from 'node:os';
import type { AuditAction } from '../../shared/audit/audit-actions.ts';
import type { Database } from '../../shared/database/connect.ts';
import { unavailable, WindlassError } from '../../shared/errors/errors.ts';
import { sleep } from '../../shared/process/abort.ts';
import { hashPassword, verifyPassword } from '../../shared/secrets/passwords.ts';
import { FairQueue, type Party } from '../concurrency/fair-queue.ts';
import { AuditedPasswords } from './audited-passwords.ts';
import { AuditedRefusals } from './audited-refusals.ts';
import { FailedLogins, LockedError, type LoginAttempt } from './failed-logins.ts';
import { findLoginUser, type LoginUser } from './find-login-user.ts';
import { PasswordFloods } from './password-floods.ts';
import { RememberedPasswords, type SentPassword } from './remembered-passwords.ts';
import type { User } from './user.ts';

/**
 * One hash takes 19 MiB and about 30 ms of one of Node's four threads, which file reads share. Each verification counts as
 * a failed login until it succeeds: few at once keep concurrent right ones from reaching the limit. All places together are
 * a second's work, or two on one or two processors.
 */
const LIMITS = {
  atOnce: availableParallelism() > 2 ? 2 : 1,
  atOncePerAddress: 1,
  perAccount: 32,
  perAddress: 32,
  inAll: 64,
};

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

export interface PasswordAttempt extends SentPassword {
  /** That of the audit's entry when it is refused. Default: login. */
  action?: AuditAction;
  /** Whether a right one gets an entry of the audit, unless it has one: for callers that write none of their own. */
  auditsSuccess?: boolean;
  requestId?: string;
}

/**
 * Verifies names and passwords, and hashes new ones: all that costs a hash goes through one bounded queue with shares for
 * accounts and addresses.
 */
export class PasswordVerifier {
  readonly #database: Database;
  readonly #failed: FailedLogins;
  /** The audit of all refused logins of this process. */
  readonly refusals: AuditedRefusals;
  readonly #right: AuditedPasswords;
  readonly #remembered = new RememberedPasswords();
  /** Passwords that are refused before they are checked. */
  readonly floods: PasswordFloods;
  readonly #underWay = new Map<string, Promise<LoginUser | undefined>>();
  readonly #queue = new FairQueue(LIMITS, tooManyPasswords);
  readonly #delayed = new FairQueue(DELAYED_LIMITS, tooManyDelayed);
  readonly #stopping: AbortSignal;
  readonly #unknown = hashPassword(randomBytes(16).toString('hex'));

  /** @param options.failedLogins LIMIT_FAILED_LOGINS */
  constructor(database: Database, options: { failedLogins: number; stopping: AbortSignal }) {
    this.#database = database;
    this.#failed = new FailedLogins(database, options.failedLogins);
    this.refusals = new AuditedRefusals(database);
    this.#right = new AuditedPasswords(database);
    this.floods = new PasswordFloods(this.#remembered, this.refusals);
    this.#stopping = options.stopping;
  }

  /** Hashes a new password that the party sent. Throws `too_many_requests` when too many wait. */
  hash(password: string, party: Party): Promise<string> {
    return this.#queue.run(party, () => hashPassword(password));
  }

  /**
   * The user; undefined for a wrong password, a disabled user and an unknown name, which cost the same and are answered as
   * late. Throws `too_many_requests` after too many failures and when too many wait, except for a remembered pair.
   */
  async check(attempt: PasswordAttempt): Promise<User | undefined> {
    const row = await this.#findOrVerify(attempt).catch((error: unknown) => {
      // A password refused because the queue is full was not checked, so it does not count as a guess.
      if (error instanceof LockedError) this.floods.count(attempt.address);
      throw error;
    });
    if (row && attempt.auditsSuccess) await this.#auditOnce(attempt);
    return row && toUser(row);
  }

  /** The caller has written the audit entry of a right password. */
  noteAudited(sent: SentPassword): void {
    this.#remembered.setAudited(sent, true);
  }

  async #auditOnce(attempt: PasswordAttempt): Promise<void> {
    if (this.#remembered.isAudited(attempt)) return;
    const { username, address, requestId } = attempt;
    // Earlier than the entry: of concurrent requests one is told.
    this.#remembered.setAudited(attempt, true);
    await this.#right.record({ username, address, requestId }).catch((error: unknown) => {
      this.#remembered.setAudited(attempt, false);
      throw error;
    });
  }

  /**
   * Checks again a pair that was right when the request began. A failure now means that the password was changed, so it
   * is not counted.
   */
  async checkAgain(attempt: PasswordAttempt): Promise<User | undefined> {
    // Nothing is known of a pair that others have displaced.
    if (!this.#remembered.has(attempt)) return this.check(attempt);
    const row = await this.#findRemembered(attempt);
    return row && toUser(row);
  }

  async #findOrVerify(attempt: PasswordAttempt): Promise<LoginUser | undefined> {
    const remembered = await this.#findRemembered(attempt);
    if (remembered) return remembered;
    // Concurrent requests with the same pair are one attempt.
    const key = this.#remembered.identify(attempt);
    let verifying = this.#underWay.get(key);
    if (!verifying) {
      verifying = this.#verifyAudited(attempt).finally(() => this.#underWay.delete(key));
      this.#underWay.set(key, verifying);
    }
    return verifying;
  }

  /** The user whose pair is remembered. A wrong password costs no query. */
  async #findRemembered(attempt: PasswordAttempt): Promise<LoginUser | undefined> {
    const passwordHash = this.#remembered.findHash(attempt);
    if (passwordHash === undefined) return undefined;
    const row = await findLoginUser(this.#database, attempt.username);
    return row?.passwordHash === passwordHash && !row.disabled ? row : undefined;
  }

  /** Tells the audit of what is refused: a wrong password, and a lock. */
  async #verifyAudited(attempt: PasswordAttempt): Promise<LoginUser | undefined> {
    const { username, address, action = 'login', requestId } = attempt;
    const login = { address, username: USERNAME.test(username) ? username : undefined };
    const refuse = () =>
      this.refusals.record({ ...login, key: this.#failed.refusalKey(login), action, requestId });
    const row = await this.#verify(attempt, login).catch(async (error: unknown) => {
      if (error instanceof LockedError) await refuse();
      throw error;
    });
    if (!row) await refuse();
    return row;
  }

  async #verify(attempt: PasswordAttempt, login: LoginAttempt): Promise<LoginUser | undefined> {
    const { password, address } = attempt;
    const party = { address, account: login.username ?? '' };
    this.#failed.refuseSeen(login);
    const delay = await this.#queue.hold(party, () => this.#failed.look(login));
    if (delay > 0) await this.#delayed.hold(party, () => this.#wait(delay));
    return this.#queue.run(party, async () => {
      await this.#failed.begin(login);
      // Not earlier: the password may have been changed while the attempt waited.
      const row = login.username ? await findLoginUser(this.#database, login.username) : undefined;
      const hash = row?.passwordHash ?? (await this.#unknown);
      if (!(await verifyPassword(hash, password)) || !row?.passwordHash || row.disabled)
        return undefined;
      await this.#failed.succeed(login);
      this.#remembered.add(hash, attempt);
      return row;
    });
  }

  async #wait(ms: number): Promise<void> {
    await sleep(this.#stopping, ms);
    if (this.#stopping.aborted)
      throw unavailable('this process is stopping.', 'Try again in a few seconds.', 2);
  }
}

const toUser = ({ username, administrator, version }: LoginUser): User => ({
  username,
  administrator,
  version,
});

const tooManyPasswords = () =>
  new WindlassError('too_many_requests', {
    detail: 'too many passwords wait for this account, for this address or in all.',
    hint: 'Wait a second, and send one at a time.',
    headers: { 'Retry-After': '1' },
  });

const tooManyDelayed = () =>
  new WindlassError('too_many_requests', {
    detail: 'too many logins of this account failed, and others wait for their delayed answers.',
    hint: 'Wait half a minute. Cookies, tokens and a password that was right from this address before are not delayed.',
    headers: { 'Retry-After': '30' },
  });
