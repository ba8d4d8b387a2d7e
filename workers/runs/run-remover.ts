import { inArray } from 'drizzle-orm';
import type { Database } from '../../shared/database/connect.ts';
import { jobs } from '../../shared/database/schema.ts';
import type { Logger } from '../../shared/log.ts';
import type { RemoteSession } from '../ssh/remote-session.ts';

/** Each removal forks on the host and writes a row: those of one session within so long are one. */
const GATHER_MS = 100;
/** One line to the agent, and one command line there, holds so many. */
const MOST = 50;
const REMOVE_MS = 30_000;

/** Lends a session's connection to the work. */
export type Use<Session = RemoteSession> = <T>(
  sid: string,
  signal: AbortSignal,
  work: (session: Session) => Promise<T>,
) => Promise<T>;

/** Removes runs whose jobs have ended, some at a time. */
export class RunRemover {
  readonly #use: Use;
  readonly #database: Database;
  readonly #log: Logger;
  readonly #waiting = new Map<string, string[]>();

  constructor(context: { use: Use; database: Database; log: Logger }) {
    this.#use = context.use;
    this.#database = context.database;
    this.#log = context.log;
  }

  /** Gathers; never fails. A process that ends before has its runs removed by another's sweep. */
  add(sid: string, id: string): void {
    const waiting = this.#waiting.get(sid);
    if (waiting) return void waiting.push(id);
    this.#waiting.set(sid, [id]);
    setTimeout(() => void this.#removeWaiting(sid), GATHER_MS).unref();
  }

  /** Whether runs of this session wait: its connection is needed yet. */
  has(sid: string): boolean {
    return this.#waiting.has(sid);
  }

  async #removeWaiting(sid: string): Promise<void> {
    const ids = this.#waiting.get(sid) ?? [];
    this.#waiting.delete(sid);
    try {
      for (let n = 0; n < ids.length; n += MOST) await this.#remove(sid, ids.slice(n, n + MOST));
    } catch (error) {
      this.#log.info(
        { err: error, jobs: ids },
        'runs that ended are removed from their host later',
      );
    }
  }

  async #remove(sid: string, ids: string[]): Promise<void> {
    const busy = await this.#use(sid, AbortSignal.timeout(REMOVE_MS), async session =>
      (await session.agent()).forgetAll(ids),
    );
    const gone = ids.filter(id => !busy.includes(id));
    if (gone.length === 0) return;
    await this.#database.db.update(jobs).set({ runRemoved: true }).where(inArray(jobs.id, gone));
  }
}
