import type { Tx } from '../shared/database/connect.ts';
import type { JobRow } from '../shared/database/schema.ts';
import type { JobKind, KindWithSession, Payload, Result } from '../shared/jobs/catalog.ts';
import type { Logger } from '../shared/process/log.ts';
import type { ServiceContext } from '../shared/service/open-service.ts';
import type { HeldClaims } from './engine/held-claims.ts';
import type { JobGroups } from './engine/job-groups.ts';
import type { WorkerMetrics } from './engine/worker-metrics.ts';
import type { OutputWriter } from './output/output-writer.ts';
import type { FinishedRunRemover } from './runs/finished-run-remover.ts';
import type { SessionPool } from './ssh/session-pool.ts';

/** What a worker process is made of; built once by create-context.ts. */
export interface WorkerContext extends ServiceContext {
  id: string;
  claims: HeldClaims;
  groups: JobGroups;
  metrics: WorkerMetrics;
  /** Only workers that take remote or video work can open credentials. */
  sessions: SessionPool;
  finishedRuns: FinishedRunRemover;
  /** Aborted when the process must stop. A job has signals of its own, because this one may outlive it. */
  stopping: AbortSignal;
}

/** One attempt at one job, of which nothing is checked yet: its row may be from a newer version. */
export interface AttemptContext {
  worker: WorkerContext;
  /** As it was claimed, with what update() and updateVisibly() have written since. */
  job: JobRow;
  /** This attempt's token. */
  token: string;
  log: Logger;
  /**
   * Aborted when the work must end, with the reason LeaseRevoked, WindlassError `cancelled`, or ReleaseJob when the worker
   * stops. Whatever the handler then throws, its job ends by that reason.
   */
  signal: AbortSignal;
  /** For cleanup after a cancel: aborted by a revoked lease or the worker's stop, never by a cancel. */
  cleanupSignal: AbortSignal;
  /** No other worker could continue: until unpin() a stopping worker waits for the job without aborting it. */
  pin(): void;
  unpin(): void;
  /** Call before an effect outside that a stale worker must not have; see HeldClaims.assertLeased. */
  assertLeased(since?: number): Promise<void>;
  /** 0…1; told to clients at most about twice a second. */
  progress(value: number, message?: string): void;
  /** Writes to the job's row under the lease, at once, then to `job`. For what no client sees: publishes nothing. */
  update(set: Partial<JobRow>): Promise<void>;
  /** Like update(), for what clients see. */
  updateVisibly(set: Partial<JobRow>): Promise<void>;
  /** `write` runs in the transaction that ends the job with the failure that the handler is about to throw. */
  withFailure(write: (tx: Tx) => Promise<void>): void;
  /** The job's output, opened where the last attempt left it. */
  output(): Promise<OutputWriter>;
}

/** What a handler works with. */
export interface JobContext<K extends JobKind = JobKind> extends AttemptContext {
  /** The id of the job's session; null for kinds without one. */
  sid: K extends KindWithSession ? string : null;
  payload: Payload<K>;
}

export type SessionContext = JobContext<KindWithSession>;

/**
 * A handler's outcome. `promote` runs in the transaction that ends the job, and returns what it adds to the result; `after`
 * runs after the commit.
 */
export interface Outcome<K extends JobKind> {
  result: Result<K>;
  promote?: (tx: Tx) => Promise<void> | Promise<Partial<Result<K>>>;
  /** Objects that the handler stored and nothing refers to yet: removed at once if the end is refused. */
  stored?: (string | undefined)[];
  after?: () => Promise<void>;
}

export type Handler<K extends JobKind> = (context: JobContext<K>) => Promise<Outcome<K>>;
