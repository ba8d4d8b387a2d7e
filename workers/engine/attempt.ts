import { and, eq, isNull, notExists, sql } from 'drizzle-orm';
import {
  describeOutage,
  isDatabaseDown,
  sqlState,
  type Tx,
} from '../../shared/database/connect.ts';
import { type JobRow, jobs, sessions, users } from '../../shared/database/schema.ts';
import {
  ERRORS,
  type ErrorRecord,
  toErrorRecord,
  WindlassError,
} from '../../shared/errors/errors.ts';
import { explainMissingObject } from '../../shared/installation/store-marker.ts';
import { SESSION_ENDED, USER_REMOVED } from '../../shared/jobs/cancel.ts';
import { isJobKind, JOBS, type JobKind, jobDefinition } from '../../shared/jobs/catalog.ts';
import { backoffAfter, MAX_CONSECUTIVE_LOSSES } from '../../shared/jobs/lease.ts';
import { removeIfRolledBack } from '../../shared/storage/remove-if-rolled-back.ts';
import type { AttemptContext, Handler, Outcome, WorkerContext } from '../context.ts';
import { createAttemptContext } from './attempt-context.ts';
import { LeaseRevoked } from './claim.ts';
import type { ClaimedRow } from './claim-jobs.ts';
import { finishJob, type JobEnd } from './end-jobs.ts';
import type { HeldClaim } from './held-claims.ts';
import { causeOf, isCancelled } from './job-signals.ts';
import { releaseJob, updateLeasedVisibly } from './leased-updates.ts';
import { type Progress, ProgressWriter } from './progress-writer.ts';
import { readPayload } from './read-payload.ts';
import { ReleaseJob } from './release-job.ts';
import { DATABASE, isUnavailable, retry } from './retry.ts';
import { UnloadableProgram } from './unloadable-program.ts';

/** A job that finds the object store unavailable is released for so long. */
const UNAVAILABLE_SECONDS = 3;

/** One attempt at a job, from its claim to its end or release. */
export class Attempt {
  readonly context: AttemptContext;
  readonly #worker: WorkerContext;
  readonly #claim: HeldClaim;
  readonly #progress: ProgressWriter;
  /** performance.now() when the job was claimed for the first time. */
  readonly #began: number;
  /** The client and the dispatcher were notified of the end. */
  #isEndNotified = false;
  /** An earlier try to write the end got no answer: it may have been committed, or may yet be. */
  #isEndUncertain = false;
  #withFailure: ((tx: Tx) => Promise<void>) | undefined;

  constructor(worker: WorkerContext, row: ClaimedRow, claim: HeldClaim) {
    this.#worker = worker;
    this.#claim = claim;
    this.#began = performance.now() - row.ranSeconds * 1_000;
    const set = setProgress(row);
    this.#progress = new ProgressWriter(async next => {
      await updateLeasedVisibly(worker.database.db, claim, set(next));
      worker.notifications.publish('job', claim.id);
    });
    this.context = createAttemptContext(worker, row, claim, {
      progress: (value, message) => this.#progress.set(value, message),
      withFailure: write => {
        this.#withFailure = write;
      },
    });
  }

  /** Runs the handler. Throws LeaseRevoked, ReleaseJob or what the job fails with. */
  async work(handlers: Map<JobKind, Handler<JobKind>>): Promise<Outcome<JobKind>> {
    const { kind, session } = this.context.job;
    try {
      const handler = isJobKind(kind) && handlers.get(kind);
      if (!handler)
        throw new WindlassError('internal', { detail: `No worker knows how to do ${kind}.` });
      if (jobDefinition(kind).session && session === null)
        throw new WindlassError('internal', { detail: `A job ${kind} has no session.` });
      const payload = await readPayload(this.context, kind);
      const outcome = await handler({ ...this.context, sid: session, payload });
      return { ...outcome, result: JOBS[kind].result.parse(outcome.result) };
    } catch (error) {
      const { database, objects } = this.#worker;
      const cause = causeOf(error, this.#claim.signals);
      throw await explainMissingObject(database.db, objects, cause);
    }
  }

  async succeed(outcome: Outcome<JobKind>): Promise<void> {
    const { result, promote } = outcome;
    await this.#end({ state: 'succeeded', result }, promote).catch(async (error: unknown) => {
      if (!this.#isEndUncertain)
        await removeIfRolledBack(this.#worker.objects, outcome.stored ?? [], error);
      throw error;
    });
    this.#worker.claims.untrack(this.#claim);
    await outcome
      .after?.()
      .catch((error: unknown) =>
        this.context.log.warn({ err: error }, 'cleaning up after a job failed'),
      );
  }

  async fail(error: unknown): Promise<void> {
    const { log } = this.context;
    if (error instanceof LeaseRevoked) {
      this.#worker.claims.revoke(this.#claim);
      // Where a failover undid stored output, this attempt holds the job still.
      this.#worker.claims.abandoned.add(this.#claim);
      return log.warn('stopped: another worker may have the job');
    }
    if (error instanceof ReleaseJob) return this.#release(error.forSeconds, error.set);
    if (isCancelled(error))
      return this.#end(
        { state: 'cancelled', error: explain(await this.#nameReason(error)) },
        this.#withFailure,
      );
    if (isDatabaseDown(error)) {
      log.warn(
        { err: error },
        `${describeOutage(error)}; its claim is abandoned when that is mended`,
      );
      return this.#worker.claims.abandoned.add(this.#claim);
    }
    if (isUnavailable(error)) {
      log.warn({ err: error }, 'something that the job needs is unavailable; the job is released');
      return this.#release(UNAVAILABLE_SECONDS);
    }
    // Not what the row has by now: progress of this attempt would make its losses those of none.
    const losses = this.context.job.consecutiveLosses + 1;
    if (error instanceof UnloadableProgram && losses < MAX_CONSECUTIVE_LOSSES) {
      log.error({ err: error }, 'a program of the service cannot run; the job is released');
      return this.#release(backoffAfter(losses), { consecutiveLosses: losses });
    }
    const record = explain(error);
    if (record.code === 'internal') log.error({ err: error }, 'job failed');
    else log.info({ code: record.code, detail: record.detail }, 'job failed');
    await this.#end({ state: 'failed', error: record }, this.#withFailure);
  }

  /** Notifies of the released or lost job too: it changed, and its slot is free. */
  close(): void {
    this.#progress.close();
    this.#claim.signals.close();
    this.#worker.claims.untrack(this.#claim);
    this.#publishEnd();
  }

  #publishEnd(): void {
    if (this.#isEndNotified) return;
    const { notifications } = this.#worker;
    notifications.publish('job', this.#claim.id);
    notifications.publish('freed', this.context.job.queue);
    this.#isEndNotified = true;
  }

  #release(afterSeconds: number, set?: Partial<JobRow>): Promise<void> {
    this.#claim.isEnding = true;
    return releaseJob(this.#worker.database.db, this.#claim, afterSeconds, set);
  }

  /**
   * A commit whose answer was lost looks at the next try like a revoked lease, or like a refusal, for instance because its
   * own bytes count by now. Then the job's row tells whether it was committed.
   */
  async #end(ending: JobEnd, promote?: Outcome<JobKind>['promote']): Promise<void> {
    const { database, groups, notifications } = this.#worker;
    this.#progress.close();
    this.#claim.isEnding = true;
    let written = ending;
    await retry(async tries => {
      this.#isEndUncertain = tries > 0;
      try {
        if (promote) written = await finishJob(database.db, this.#claim, ending, promote);
        else this.#isEndNotified = await groups.end({ claim: this.#claim, ending });
      } catch (error) {
        const isRefused = error instanceof LeaseRevoked || error instanceof WindlassError;
        if (tries > 0 && isRefused && (await this.#hasEndedAs(ending))) return;
        throw error;
      }
    }, DATABASE);
    this.#worker.claims.ends.remember(this.context.job, written);
    // The commit has told of it: what was to be published soon is outdated.
    if (this.#isEndNotified) notifications.withdraw('job', this.#claim.id);
    this.#publishEnd();
    const seconds = (performance.now() - this.#began) / 1_000;
    this.#worker.metrics.ended(this.context.job.kind, ending.state, seconds);
    this.context.log.debug({ state: ending.state, seconds }, 'job ended');
  }

  /** Nobody asked for the end of this job where that of its session, or of its user, cancelled it. */
  async #nameReason(error: WindlassError): Promise<WindlassError> {
    if (error.message !== ERRORS.cancelled.title) return error;
    const { db } = this.#worker.database;
    const itsUser = db.select({ one: sql`1` }).from(users).where(eq(users.username, jobs.owner));
    const reasons = db
      .select({
        isOfSession: sql<boolean>`${sessions.ended} is not null`,
        isOfUser: notExists(itsUser).mapWith(Boolean),
      })
      .from(jobs)
      .leftJoin(sessions, eq(sessions.sid, jobs.session))
      .where(and(eq(jobs.id, this.context.job.id), isNull(jobs.userCancelled)));
    // While the database is unreachable the end is written later, without this.
    const [found] = await reasons.catch(() => []);
    if (found?.isOfSession) return new WindlassError('cancelled', { detail: SESSION_ENDED });
    return found?.isOfUser ? new WindlassError('cancelled', { detail: USER_REMOVED }) : error;
  }

  async #hasEndedAs({ state }: JobEnd): Promise<boolean> {
    const [row] = await this.#worker.database.db
      .select({ state: jobs.state })
      .from(jobs)
      .where(eq(jobs.id, this.#claim.id));
    return row?.state === state;
  }
}

/**
 * What to write of progress. A job that gets further than before has lost no worker in a row. One whose attempts all end at
 * the same place would go on for ever, so what the lost attempts had stays until this one has more.
 */
function setProgress({ consecutiveLosses, progress: before }: JobRow) {
  const had = consecutiveLosses > 0 ? (before ?? 0) : -1;
  return ({ progress, message }: Progress): Partial<JobRow> =>
    // The column has single precision.
    Math.fround(progress) > Math.fround(had)
      ? { progress, message, consecutiveLosses: 0 }
      : { progress: had, message };
}

/** The error record of a job; the texts of unknown errors stay in the log. */
function explain(error: unknown): ErrorRecord & { extra?: unknown } {
  if (error instanceof WindlassError && Object.keys(error.extra).length > 0)
    return { ...error.toRecord(), ...error.extra };
  if (sqlState(error) === '53100')
    return new WindlassError('insufficient_storage', {
      detail: "The database's disk is full.",
    }).toRecord();
  return toErrorRecord(error);
}
