import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { sqlState } from '../connect.ts';
import type { BackendWatch } from './backend-watch.ts';

/**
 * A statement that waits for a strong lock makes all later ones on the table wait behind it: it gives up soon, and tries
 * again after a pause in which they run.
 */
export const LOCK_TIMEOUT = '2s';
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10_000;
/** lock_not_available and deadlock_detected. */
const LOCK_STATES = ['55P03', '40P01'];

/** What was committed before is kept, and the next run goes on behind it. */
export class MigrationError extends Error {
  constructor(what: string, cause: unknown) {
    const why = cause instanceof Error ? cause.message : String(cause);
    super(`${what} failed: ${why.replace(/\.$/, '')}.`, { cause });
    this.name = 'MigrationError';
  }
}

/** The connection of a migration, and whom it tells of its waits. */
export class MigrationSession {
  readonly client: pg.Client;
  readonly pid: number;
  readonly watch: BackendWatch;
  readonly say: (line: string) => void;
  readonly signal: AbortSignal | undefined;

  constructor(options: Pick<MigrationSession, 'client' | 'pid' | 'watch' | 'say' | 'signal'>) {
    this.client = options.client;
    this.pid = options.pid;
    this.watch = options.watch;
    this.say = options.say;
    this.signal = options.signal;
  }

  /** Does work that may take long; `note` says how far it is. */
  async tell<T>(label: string, work: () => Promise<T>, note = () => ''): Promise<T> {
    try {
      return await this.watch.during(work, { pid: this.pid, label, note });
    } catch (error) {
      this.signal?.throwIfAborted();
      throw new MigrationError(label, error);
    }
  }

  /** Tries work again, for as long as it takes, when it did not get a lock. It must have left nothing. */
  async retry<T>(label: string, work: () => Promise<T>): Promise<T> {
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
      this.watch.holders = undefined;
      try {
        return await work();
      } catch (error) {
        if (!LOCK_STATES.includes(sqlState(error) ?? '')) throw error;
        const whose = this.watch.holders ?? 'another process';
        this.say(`${label} waits for a lock of ${whose}; it tries again in ${pause / 1000} s.`);
        await delay(pause, undefined, { signal: this.signal });
      }
    }
  }

  async transaction<T>(work: () => Promise<T>): Promise<T> {
    await this.client.query('begin');
    try {
      const result = await work();
      await this.client.query('commit');
      return result;
    } catch (error) {
      await this.client.query('rollback').catch(() => {});
      throw error;
    }
  }
}
