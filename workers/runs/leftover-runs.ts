import { and, asc, eq, gt, isNotNull, notInArray, sql } from 'drizzle-orm';
import type { Database } from '../../shared/database/connect.ts';
import { jobs, sessions } from '../../shared/database/schema.ts';
import type { Logger } from '../../shared/log.ts';
import type { RemoteSession } from '../ssh/remote-session.ts';
import { Backoff } from './backoff.ts';
import { type FinishedRun, findStates, mayRunOn, removeFinished } from './finished-runs.ts';
import type { Use } from './run-remover.ts';

/** A session that could not be used is looked at again this much later: what was cancelled there may run yet. */
const AGAIN_MS = 60_000;
/** A run that lives on is looked at again after a minute, then after two, and so on. */
const LONGEST_MS = 3_600_000;
const REMOVE_MS = 30_000;
/** Of all sessions in one look. */
const MOST = 20;
/** Sessions, and runs, that are remembered to be left alone for a while. */
const MOST_REMEMBERED = 1_000;

interface LeftoverContext {
  database: Pick<Database, 'db'>;
  log: Logger;
  use: Use<Pick<RemoteSession, 'agent'>>;
  /** LIMIT_COMMAND_SECONDS. */
  limitSeconds: number;
  /** Whether the session may be used, or logged in for this alone. */
  mayUse(sid: string): Promise<boolean>;
  /** Default 1,000. */
  mostRemembered?: number;
}

/** Removes runs whose job has ended but that are still on their host, because a worker died in between. */
export class LeftoverRuns {
  readonly #context: LeftoverContext;
  readonly #away: Backoff;
  readonly #alive: Backoff;
  /** Sessions whose runs are being removed. */
  readonly #busy = new Set<string>();
  /** The last run of the last look. The next one goes on there, so that all have their turn however many live on. */
  #last = '';

  constructor(context: LeftoverContext) {
    this.#context = context;
    const { mostRemembered: most = MOST_REMEMBERED } = context;
    this.#away = new Backoff({ firstMs: AGAIN_MS, longestMs: AGAIN_MS, most });
    this.#alive = new Backoff({ firstMs: AGAIN_MS, longestMs: LONGEST_MS, most });
  }

  /** One look, for some of them, the oldest first. What it finds is removed meanwhile: no host holds up another's. */
  async look(): Promise<void> {
    const left = new Map<string, FinishedRun[]>();
    for (const { sid, ...run } of await this.#find())
      left.set(sid, [...(left.get(sid) ?? []), run]);
    for (const [sid, runs] of left) void this.#removeOf(sid, runs);
  }

  async #find(): Promise<(FinishedRun & { sid: string })[]> {
    const found = await this.#context.database.db
      .select({
        id: jobs.id,
        sid: sessions.sid,
        mayRunOn: mayRunOn(this.#context.limitSeconds),
      })
      .from(jobs)
      .innerJoin(sessions, eq(sessions.sid, jobs.session))
      .where(
        and(
          isNotNull(jobs.runAt),
          eq(jobs.runRemoved, false),
          sql`${jobs.finished} < now() - interval '5 seconds'`,
          isNotNull(sessions.sealed),
          gt(jobs.id, this.#last),
          notInArray(jobs.id, this.#alive.names()),
          notInArray(sessions.sid, [...this.#away.names(), ...this.#busy]),
        ),
      )
      .orderBy(asc(jobs.id))
      .limit(MOST);
    this.#last = found.length < MOST ? '' : (found.at(-1)?.id ?? '');
    return found;
  }

  /** Never fails. */
  async #removeOf(sid: string, runs: FinishedRun[]): Promise<void> {
    const { log, use, mayUse } = this.#context;
    this.#busy.add(sid);
    try {
      if (!(await mayUse(sid))) return this.#away.note(sid);
      await use(sid, AbortSignal.timeout(REMOVE_MS), session => this.#remove(session, runs));
      this.#away.forget(sid);
    } catch (error) {
      this.#away.note(sid);
      log.info({ err: error, sid }, 'runs that ended could not be removed from their host yet');
    } finally {
      this.#busy.delete(sid);
    }
  }

  async #remove(session: Pick<RemoteSession, 'agent'>, runs: FinishedRun[]): Promise<void> {
    const { database, log } = this.#context;
    const agent = await session.agent();
    const open = runs.filter(run => run.mayRunOn).map(run => run.id);
    const states = open.length > 0 ? await findStates(agent, open) : new Map<string, string>();
    for (const run of runs) {
      const [kept] = await removeFinished(agent, [run], states);
      if (kept) {
        this.#alive.note(run.id);
        log.info({ job: run.id }, 'a run whose job ended lives on');
        continue;
      }
      await database.db.update(jobs).set({ runRemoved: true }).where(eq(jobs.id, run.id));
      this.#alive.forget(run.id);
    }
  }
}
