import { eq } from 'drizzle-orm';
import { followSignal } from '../../shared/abort.ts';
import { isDatabaseDown, sqlState } from '../../shared/database/connect.ts';
import { jobs } from '../../shared/database/schema.ts';
import { type ErrorRecord, toErrorRecord, WindlassError } from '../../shared/errors.ts';
import { CANCELLED } from '../../shared/jobs/cancel.ts';
import { isJobKind, JOBS, type JobKind, type Payload } from '../../shared/jobs/catalog.ts';
import type { Entry } from '../../shared/jobs/queue.ts';
import {
  type Handler,
  type JobContext,
  type Outcome,
  ReleaseJob,
  type WorkerContext,
} from '../context.ts';
import { OutputWriter } from '../output/output-writer.ts';
import {
  type Claim,
  type ClaimedRow,
  claimJob,
  type Ending,
  finishJob,
  LeaseLost,
  releaseJob,
  updateLeased,
  updateLeasedQuietly,
} from './claims.ts';
import type { TrackedLease } from './lease-renewer.ts';
import { DATABASE, retry } from './retry.ts';

/** After so long a job is tried again that found the object store away. */
const UNAVAILABLE_SECONDS = 3;
/** Progress is written at most so often. */
const PROGRESS_MS = 400;

/**
 * Takes up what a queue entry names and carries it to an end, or leaves it to another worker; false where it was not to be
 * had. Never throws.
 */
export async function runJob(
  worker: WorkerContext,
  entry: Entry,
  handlers: Map<JobKind, Handler<JobKind>>,
): Promise<boolean> {
  const row = await claimJob(worker.database.db, entry, worker.id).catch((error: unknown) => {
    // The dispatcher looks again in 15 s.
    worker.log.warn({ err: error, job: entry.id }, 'a job could not be claimed');
    return undefined;
  });
  if (!row?.leaseToken) return false;
  const claim: Claim = { id: row.id, token: row.leaseToken };
  const log = worker.log.child({
    job: row.id,
    kind: row.kind,
    requestId: row.requestId ?? undefined,
  });
  worker.metrics.taken(row);
  log.debug({ epoch: row.epoch, consecutiveLosses: row.consecutiveLosses }, 'job taken');
  // What ends at once is told once.
  worker.notifications.publishSoon('job', row.id);
  const held = worker.leases.track(claim, { cancelled: row.cancelRequested !== null, log });
  const attempt = new Attempt(worker, row, held, log);
  try {
    attempt.readPayload();
    const handler = handlers.get(row.kind as JobKind);
    if (!handler)
      throw new WindlassError('internal', { detail: `No worker knows how to do ${row.kind}.` });
    const outcome = await handler(attempt.context);
    await attempt.succeed(outcome);
  } catch (error) {
    await attempt
      .fail(error)
      .catch((later: unknown) =>
        log.error({ err: later }, 'a job could not be ended; its lease will run out'),
      );
  } finally {
    attempt.close();
    worker.leases.untrack(claim);
    if (!attempt.hasToldEnd) worker.notifications.publish('job', row.id);
  }
  return true;
}

class Attempt {
  readonly context: JobContext;
  readonly #worker: WorkerContext;
  readonly #held: TrackedLease;
  readonly #progress: ProgressWriter;
  readonly #unlink: () => void;
  /** When the job was first taken, as performance.now() counts. */
  readonly #began: number;
  hasToldEnd = false;

  constructor(worker: WorkerContext, row: ClaimedRow, held: TrackedLease, log: JobContext['log']) {
    this.#worker = worker;
    this.#held = held;
    this.#began = performance.now() - row.ranSeconds * 1_000;
    this.#progress = new ProgressWriter(worker, held);
    const stopping = followSignal(worker.stopping, new ReleaseJob('the worker is stopping'));
    this.#unlink = stopping.unlink;
    let output: Promise<OutputWriter> | undefined;
    const tell = () => worker.notifications.publish('job', row.id);
    this.context = {
      worker,
      job: row,
      // Until readPayload() has looked at it, which may fail: the row may be from a newer version.
      payload: row.payload as Payload<JobKind>,
      token: held.token,
      log,
      signal: held.lost.signal,
      cancel: held.cancel.signal,
      stopping: stopping.signal,
      over: AbortSignal.any([held.lost.signal, held.cancel.signal, stopping.signal]),
      assertLeased: since => worker.leases.assertLeased(held, since),
      progress: (value, message) => this.#progress.set(value, message),
      update: async set => {
        await retry(() => updateLeasedQuietly(worker.database.db, held, set), DATABASE);
      },
      output: () => {
        output ??= OutputWriter.open(
          {
            database: worker.database,
            objects: worker.objects,
            onStored: tell,
            over: this.context.over,
          },
          held,
          // Nobody writes to a job's output between its claim and here.
          { stdout: row.stdoutBytes, stderr: row.stderrBytes },
        );
        return output;
      },
    };
  }

  readPayload(): void {
    const { job } = this.context;
    if (!isJobKind(job.kind))
      throw new WindlassError('internal', { detail: `No worker knows how to do ${job.kind}.` });
    this.context.payload = JOBS[job.kind].payload.parse(job.payload);
  }

  async succeed(outcome: Outcome<JobKind>): Promise<void> {
    const { job } = this.context;
    const result = JOBS[job.kind as JobKind].result.parse(outcome.result);
    await this.#end({ state: 'succeeded', result }, outcome.promote);
    this.#worker.leases.untrack(this.#held);
    await outcome
      .after?.()
      .catch((error: unknown) =>
        this.context.log.warn({ err: error }, 'cleaning up after a job failed'),
      );
  }

  async fail(error: unknown): Promise<void> {
    const { log } = this.context;
    if (error instanceof LeaseLost || this.#held.lost.signal.aborted) {
      this.#worker.leases.lose(this.#held);
      return log.warn('stopped: the job is no longer ours');
    }
    if (error instanceof ReleaseJob) return this.#release(error.forSeconds);
    if (this.#held.cancel.signal.aborted || isCancelled(error))
      return this.#end({ state: 'cancelled', error: asCancelled(error) });
    if (isDatabaseDown(error))
      return log.warn({ err: error }, 'the database went away; the lease will run out');
    if (error instanceof WindlassError && error.code === 'unavailable') {
      log.warn({ err: error }, 'something that the job needs is away; it waits');
      return this.#release(UNAVAILABLE_SECONDS);
    }
    const record = explain(error);
    if (record.code === 'internal') log.error({ err: error }, 'job failed');
    else log.info({ code: record.code, detail: record.detail }, 'job failed');
    await this.#end({ state: 'failed', error: record });
  }

  close(): void {
    this.#progress.close();
    this.#unlink();
  }

  #release(afterSeconds: number): Promise<void> {
    this.#held.isEnding = true;
    return releaseJob(this.#worker.database.db, this.#held, afterSeconds);
  }

  /** A commit whose answer was lost shows as a lost lease at the second try: then the row says what came of it. */
  async #end(ending: Ending, promote?: Outcome<JobKind>['promote']): Promise<void> {
    this.#progress.close();
    this.#held.isEnding = true;
    await retry(async tries => {
      try {
        await finishJob(this.#worker.database.db, this.#held, ending, promote);
      } catch (error) {
        if (tries > 0 && error instanceof LeaseLost && (await this.#hasEndedAs(ending))) return;
        throw error;
      }
    }, DATABASE);
    this.hasToldEnd = true;
    this.#worker.notifications.publish('job', this.#held.id);
    const seconds = (performance.now() - this.#began) / 1_000;
    this.#worker.metrics.ended(this.context.job.kind, ending.state, seconds);
    this.context.log.debug({ state: ending.state, seconds }, 'job ended');
  }

  async #hasEndedAs({ state }: Ending): Promise<boolean> {
    const [row] = await this.#worker.database.db
      .select({ state: jobs.state })
      .from(jobs)
      .where(eq(jobs.id, this.#held.id));
    return row?.state === state;
  }
}

/** Cancelled is cancelled, however the handler came to its end; it may say more about it. */
function asCancelled(error: unknown): ErrorRecord {
  return isCancelled(error) ? explain(error) : CANCELLED;
}

const isCancelled = (error: unknown): error is WindlassError =>
  error instanceof WindlassError && error.code === 'cancelled';

/** What a failed job says; words of unknown errors stay in the log. */
function explain(error: unknown): ErrorRecord & { extra?: unknown } {
  if (error instanceof WindlassError && Object.keys(error.extra).length > 0)
    return { ...error.toRecord(), ...error.extra };
  if (sqlState(error) === '53100')
    return new WindlassError('insufficient_storage', {
      detail: "The database's disk is full.",
    }).toRecord();
  return toErrorRecord(error);
}

/** Writes progress to the row, at most every 400 ms and never backwards in time. */
class ProgressWriter {
  #next: { progress: number; message: string | null } | undefined;
  #timer: NodeJS.Timeout | undefined;
  readonly #worker: WorkerContext;
  readonly #held: TrackedLease;

  constructor(worker: WorkerContext, held: TrackedLease) {
    this.#worker = worker;
    this.#held = held;
  }

  set(value: number, message?: string): void {
    this.#next = { progress: Math.min(1, Math.max(0, value)), message: message ?? null };
    this.#timer ??= setTimeout(() => this.#write(), PROGRESS_MS);
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#next = undefined;
  }

  #write(): void {
    this.#timer = undefined;
    if (!this.#next) return;
    const { db } = this.#worker.database;
    // Progress is also a sign of life: it starts the count of consecutiveLosses anew.
    updateLeased(db, this.#held, { ...this.#next, consecutiveLosses: 0 })
      .then(() => this.#worker.notifications.publish('job', this.#held.id))
      .catch(() => {});
    this.#next = undefined;
  }
}
