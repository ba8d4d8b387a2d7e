import { inArray, sql } from 'drizzle-orm';
import { LRUCache } from 'lru-cache';
import type { Database } from '../../shared/database/connect.ts';
import {
  FAILED_LOGIN_WINDOW_SECONDS,
  isCurrent,
  secondsLeft,
} from '../../shared/database/failed-login-window.ts';
import { failedLogins } from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors/errors.ts';
import { Turns } from './turns.ts';

/** Accounts whose last login of that user was taken, in memory. */
const MAX_TAKEN = 10_000;

/** A login of a user of this service at a machine. */
export interface HostLogin {
  user: string;
  /** As describeHops() gives it. */
  machine: string;
  account: string;
}

/** To be awaited before a credential is sent. Throws `too_many_requests`. */
export type Permit = () => Promise<void>;

/** What a login is given to tell what it does. */
export interface LoginGuard {
  permit: Permit;
  /** The host asks the user: others need not wait for the answer. */
  pause(): void;
}

/**
 * Counts the logins that a machine refuses to each user, in all processes, and stops that user there after a few: software on
 * hosts bans the address of the worker, and so everybody (decision 18). Nobody else is stopped: otherwise one user could lock
 * the account of another.
 */
export class LoginRefusals {
  readonly #database: Database;
  readonly #limit: number;
  readonly #taken = new LRUCache<string, true>({ max: MAX_TAKEN });
  readonly #turns = new Turns();

  /** @param limit LIMIT_REFUSED_LOGINS; 0: no limit */
  constructor(database: Database, limit: number) {
    this.#database = database;
    this.#limit = limit;
  }

  /** Runs a login, unless the machine has refused too many: then it throws `too_many_requests`. */
  async guard<T>(at: HostLogin, login: (guard: LoginGuard) => Promise<T>): Promise<T> {
    if (this.#limit === 0) return login({ permit: async () => {}, pause: () => {} });
    const isKnown = (await this.#look(at)) === 0;
    let isSent = false;
    const turn = this.#turns.of(machineKey(at));
    const permit = async () => {
      isSent = true;
      // One after the other, so that each sees how the others before it ended.
      if (!this.#taken.has(accountKey(at))) await turn.take();
      await this.#look(at);
    };
    try {
      const result = await login({ permit, pause: turn.leave });
      this.#taken.set(accountKey(at), true);
      if (!isKnown) await this.#forgive(at);
      return result;
    } catch (error) {
      const isRefused =
        error instanceof WindlassError && error.code === 'remote_authentication_failed';
      if (isSent && isRefused) await this.#count(at);
      throw error;
    } finally {
      turn.end();
    }
  }

  /** How many the machine has refused to the user. */
  async #look(at: HostLogin): Promise<number> {
    const [row] = await this.#database.db
      .select({ failures: failedLogins.failures, left: secondsLeft })
      .from(failedLogins)
      .where(sql`${failedLogins.key} = ${machineKey(at)} and ${isCurrent}`);
    if (row && row.failures >= this.#limit) throw tooManyRefused(this.#limit, row.left);
    return row?.failures ?? 0;
  }

  async #count(at: HostLogin): Promise<void> {
    this.#taken.delete(accountKey(at));
    await this.#database.db
      .insert(failedLogins)
      // The shorter key first, as #forgive() locks them.
      .values(
        [machineKey(at), accountKey(at)].map(key => ({ key, failures: 1, began: sql`now()` })),
      )
      .onConflictDoUpdate({
        target: failedLogins.key,
        set: {
          failures: sql`case when ${isCurrent} then ${failedLogins.failures} + 1 else 1 end`,
          began: sql`case when ${isCurrent} then ${failedLogins.began} else now() end`,
        },
      })
      // A login that was refused is not tried again, whatever fails besides.
      .catch(() => {});
  }

  /** The account took a login: subtracts what it had refused, but not what other accounts of the machine did. */
  async #forgive(at: HostLogin): Promise<void> {
    const { db } = this.#database;
    const forgiven = db.transaction(async tx => {
      const rows = await tx
        .select({
          key: failedLogins.key,
          failures: failedLogins.failures,
          began: failedLogins.began,
        })
        .from(failedLogins)
        .where(inArray(failedLogins.key, [machineKey(at), accountKey(at)]))
        .orderBy(sql`${failedLogins.key} collate "C"`)
        .for('update');
      const ofMachine = rows.find(({ key }) => key === machineKey(at));
      const ofAccount = rows.find(({ key }) => key === accountKey(at));
      if (!ofMachine || !ofAccount) return;
      await tx.delete(failedLogins).where(sql`${failedLogins.key} = ${ofAccount.key}`);
      // Else it tells of a window of before.
      if (ofAccount.began < ofMachine.began) return;
      const failures = Math.max(0, ofMachine.failures - ofAccount.failures);
      await tx
        .update(failedLogins)
        .set({ failures })
        .where(sql`${failedLogins.key} = ${ofMachine.key}`);
    });
    // The login was taken, whatever fails besides.
    await forgiven.catch(() => {});
  }
}

/** No address of a client, which other keys begin with, is `ssh`. */
const machineKey = ({ user, machine }: HostLogin) => `ssh ${machine} ${user}`;
const accountKey = (at: HostLogin) => `${machineKey(at)} ${at.account}`;

function tooManyRefused(limit: number, left: number): WindlassError {
  const seconds = Math.max(1, left);
  const until = new Date(Date.now() + seconds * 1_000).toISOString();
  return new WindlassError('too_many_requests', {
    detail: `the host refused ${limit} logins of yours in ${FAILED_LOGIN_WINDOW_SECONDS / 60} minutes; none is sent before ${until}, because hosts ban whoever goes on.`,
    hint: `Wait ${Math.ceil(seconds / 60)} minutes, and look meanwhile whether your account and its password or key are right. LIMIT_REFUSED_LOGINS sets the limit.`,
    headers: { 'Retry-After': String(seconds) },
    extra: { until },
  });
}
