import { and, asc, eq, gt, isNotNull, notInArray, sql } from 'drizzle-orm';
import type { Database } from '../../shared/database/connect.ts';
import { failureLevel } from '../../shared/database/failure-level.ts';
import { type JobRow, jobs, sessions } from '../../shared/database/schema.ts';
import { mayBeLeft, rowLeavesUnremoved } from '../../shared/jobs/run-intent.ts';
import { sleep } from '../../shared/process/abort.ts';
import type { Logger } from '../../shared/process/log.ts';
import type { ListedStates } from '../host-agent/protocol/run-lists.ts';
import { Backoff } from './backoff.ts';
import {
  type Agent,
  BATCH,
  type FinishedRun,
  listStates,
  recordRemoval,
  removeFinishedRuns,
  removeListedRuns,
  selectFinishedRuns,
} from './finished-runs.ts';

/** Each removal costs a fork on the host and a commit: runs of a session that end within this time share them. */
const GATHER_MS = 1_000;
/** The first commands of a new connection have the host to themselves for this long. */
const CONNECT_DELAY_MS = 5_000;
const REMOVE_MS = 30_000;
const SWEEP_MS = 5_000;
/** Runs of all sessions in one sweep. */
const SWEEP_BATCH = 20;
/** Until a session that could not be used is tried again: a cancelled command may still run there. */
const SESSION_RETRY_MS = 60_000;
/** The longest pause before a run that stays alive is tried again; pauses double from one minute. */
const RUN_RETRY_MAX_MS = 3_600_000;
/** Sessions, and runs, whose backoff is kept in memory. */
const MAX_BACKOFFS = 1_000;

interface Connection {
  agent(): Promise<Agent>;
}

interface RemoverContext {
  database: Pick<Database, 'db'>;
  log: Logger;
  /** LIMIT_COMMAND_SECONDS. */
  limitSeconds: number;
  /** Calls `work` with the session's connection. */
  use<T>(
    sid: string,
    signal: AbortSignal,
    work: (connection: Connection) => Promise<T>,
  ): Promise<T>;
  /** Whether the session is connected, or may be connected for a sweep alone. */
  mayUse(sid: string): Promise<boolean>;
  /** Default 1,000. */
  maxBackoffs?: number;
}

/**
 * Removes the runs of ended jobs from their hosts: soon after the end, at a new connection, and by a sweep for what a
 * dead worker or an absent host left. No failure is thrown: a later sweep or connection repeats it.
 */
export class FinishedRunRemover {
  readonly #context: RemoverContext;
  /** Runs by session that wait for removeSoon()'s timer. */
  readonly #gathered = new Map<string, FinishedRun[]>();
  readonly #sessionBackoff: Backoff;
  readonly #runBackoff: Backoff;
  /** Sessions that a sweep is removing runs of. */
  readonly #sweeping = new Set<string>();
  /** Where the next sweep continues, so that runs that stay alive do not block the others. */
  #cursor = '';

  constructor(context: RemoverContext) {
    this.#context = context;
    const { maxBackoffs: most = MAX_BACKOFFS } = context;
    const firstMs = SESSION_RETRY_MS;
    this.#sessionBackoff = new Backoff({ firstMs, longestMs: firstMs, most });
    this.#runBackoff = new Backoff({ firstMs, longestMs: RUN_RETRY_MAX_MS, most });
  }

  /** Removes the run of a job whose end is committed, in a batch with others of its session. */
  removeSoon(job: Pick<JobRow, 'id' | 'session' | 'runAt' | 'runPlace' | 'runRemoved'>): void {
    const { id, session: sid, runAt, runPlace } = job;
    if (!mayBeLeft(job) || sid === null) return;
    const run = { id, runAt, runPlace, mayKeepRunning: false };
    const gathered = this.#gathered.get(sid);
    if (gathered) return void gathered.push(run);
    this.#gathered.set(sid, [run]);
    setTimeout(() => void this.#removeGathered(sid), GATHER_MS).unref();
  }

  /** Whether removeSoon() still needs this session's connection. */
  hasGathered(sid: string): boolean {
    return this.#gathered.has(sid);
  }

  /**
   * Removes the account's finished runs 5 s after a new connection, also those of sessions whose credential is erased.
   */
  removeOnConnection(connection: Connection & { readonly closed: Promise<void> }): void {
    const timer = setTimeout(() => {
      const removing = connection.agent().then(agent => removeListedRuns(agent, this.#context));
      removing.catch((err: unknown) => {
        const why =
          'finished runs of an account could not be removed; the next connection tries again';
        this.#context.log.info({ err }, why);
      });
    }, CONNECT_DELAY_MS);
    timer.unref();
    void connection.closed.then(() => clearTimeout(timer));
  }

  /** Sweeps again and again. */
  async sweepUntil(stopping: AbortSignal): Promise<void> {
    for (;;) {
      await sleep(stopping, SWEEP_MS);
      if (stopping.aborted) return;
      await this.sweep().catch((err: unknown) =>
        this.#context.log[failureLevel(err)]({ err }, 'the sweep of finished runs failed'),
      );
    }
  }

  /**
   * Finds some finished runs, oldest first, and starts to remove them. Resolves before that is done, so that a slow
   * host does not delay the others.
   */
  async sweep(): Promise<void> {
    const bySession = new Map<string, FinishedRun[]>();
    for (const { sid, ...run } of await this.#findSome())
      bySession.set(sid, [...(bySession.get(sid) ?? []), run]);
    for (const [sid, runs] of bySession) void this.#sweepSession(sid, runs);
  }

  async #removeGathered(sid: string): Promise<void> {
    const runs = this.#gathered.get(sid) ?? [];
    this.#gathered.delete(sid);
    try {
      for (let n = 0; n < runs.length; n += BATCH)
        await this.#removeEnded(sid, runs.slice(n, n + BATCH));
    } catch (error) {
      this.#context.log.info(
        { err: error, jobs: runs.map(({ id }) => id) },
        'finished runs could not be removed from their host; the sweep tries again',
      );
    }
  }

  async #removeEnded(sid: string, runs: FinishedRun[]): Promise<void> {
    const states = new Map(runs.map(({ id }) => [id, 'ended'] as const));
    await this.#context.use(sid, AbortSignal.timeout(REMOVE_MS), async connection => {
      const agent = await connection.agent();
      const alive = await removeFinishedRuns(agent, runs, states);
      const removed = runs.filter(({ id }) => !alive.includes(id));
      await recordRemoval(this.#context.database.db, agent, removed);
    });
  }

  async #findSome(): Promise<(FinishedRun & { sid: string })[]> {
    const { database, limitSeconds } = this.#context;
    const { db } = database;
    const itsOwnWorkerMissed = sql`${jobs.finished} < now() - interval '5 seconds'`;
    const runs = selectFinishedRuns(db, limitSeconds, {
      jobs: and(rowLeavesUnremoved, itsOwnWorkerMissed),
    }).as('finished_runs');
    const found = await db
      .select({
        id: runs.id,
        sid: sessions.sid,
        runAt: runs.runAt,
        runPlace: runs.runPlace,
        mayKeepRunning: runs.mayKeepRunning,
      })
      .from(runs)
      .innerJoin(sessions, eq(sessions.sid, runs.session))
      .where(
        and(
          isNotNull(sessions.sealed),
          gt(runs.id, this.#cursor),
          notInArray(runs.id, this.#runBackoff.paused()),
          notInArray(sessions.sid, [...this.#sessionBackoff.paused(), ...this.#sweeping]),
        ),
      )
      .orderBy(asc(runs.id))
      .limit(SWEEP_BATCH);
    this.#cursor = found.length < SWEEP_BATCH ? '' : (found.at(-1)?.id ?? '');
    return found;
  }

  async #sweepSession(sid: string, runs: FinishedRun[]): Promise<void> {
    const { log, use, mayUse } = this.#context;
    this.#sweeping.add(sid);
    try {
      if (!(await mayUse(sid))) return this.#sessionBackoff.fail(sid);
      await use(sid, AbortSignal.timeout(REMOVE_MS), async connection =>
        this.#stopAndRemove(await connection.agent(), runs),
      );
      this.#sessionBackoff.reset(sid);
    } catch (error) {
      this.#sessionBackoff.fail(sid);
      log.info({ err: error, sid }, 'finished runs could not be removed from their host yet');
    } finally {
      this.#sweeping.delete(sid);
    }
  }

  async #stopAndRemove(agent: Agent, runs: FinishedRun[]): Promise<void> {
    const listed = runs.filter(run => run.mayKeepRunning).map(run => run.id);
    const states: ListedStates = listed.length > 0 ? await listStates(agent, listed) : new Map();
    for (const run of runs) {
      const [alive] = await removeFinishedRuns(agent, [run], states);
      if (alive) {
        this.#runBackoff.fail(run.id);
        this.#context.log.info({ job: run.id }, 'the run of an ended job is still alive');
        continue;
      }
      if (await recordRemoval(this.#context.database.db, agent, [run]))
        this.#runBackoff.reset(run.id);
      else this.#runBackoff.fail(run.id);
    }
  }
}
