import type { Database } from '../../shared/database/connect.ts';
import { failureLevel } from '../../shared/database/failure-level.ts';
import type { Notifications } from '../../shared/database/notifications.ts';
import type { JobRow } from '../../shared/database/schema.ts';
import { findDefinition } from '../../shared/jobs/catalog.ts';
import { RENEW_MS } from '../../shared/jobs/lease.ts';
import { runEndLost } from '../../shared/jobs/run-intent.ts';
import type { Logger } from '../../shared/process/log.ts';
import type { JobEnd } from './end-jobs.ts';
import { type Claim, LeaseLost } from './fencing-token.ts';
import type { JobSignals } from './job-signals.ts';
import { listClaims, renewLease } from './leases.ts';
import { abandonClaim, endAgain } from './losses.ts';
import type { WorkerMetrics } from './worker-metrics.ts';

/** The lease of one job that this worker runs. */
export interface TrackedLease extends Claim {
  signals: JobSignals;
  /** Set before the write that ends the claim: from then on only that write tells whether the lease was lost. */
  isEnding: boolean;
  /** The attempt's. */
  log: Logger;
}

/** What is written to a job that had ended: the same end, or else what its row tells of its run on a host. */
interface RememberedEnd {
  ending?: JobEnd;
  run?: Pick<JobRow, 'runAt' | 'runPlace' | 'runRemoved'>;
}

interface RenewerContext {
  /** The worker's. */
  id: string;
  database: Database;
  notifications: Notifications;
  log: Logger;
  metrics: WorkerMetrics;
}

/** A claim whose answer was lost may still be committed, within the time-out of statements. */
const ABANDONED_MS = 30_000;
/** What is claimed or ended now is known, or gone, at the next look. */
const LOOK_MS = 30_000;
/** A failover undoes the ends of its last seconds. */
const MAX_ENDED = 10_000;

/**
 * Renews this process's lease every 3 s while it has jobs, and reports lost leases and cancels to them. One lease row
 * covers all jobs; each job's row tells whether this worker still has it.
 */
export class LeaseRenewer {
  readonly #context: RenewerContext;
  readonly #leases = new Map<string, TrackedLease & { renewed: number }>();
  /** By token: performance.now() until which the claim may appear. */
  readonly #abandoned = new Map<string, Claim & RememberedEnd & { until: number }>();
  /** By job, which may be given back under an earlier token: those that ended here last and must not be done again. */
  readonly #ended = new Map<string, RememberedEnd>();
  /** Tokens of claims that nothing here worked at when they were last looked for. */
  #strays = new Set<string>();
  #lookedAt = performance.now();
  readonly #lookMs: number;
  readonly #stop: () => void;

  constructor(context: RenewerContext, { lookMs = LOOK_MS }: { lookMs?: number } = {}) {
    this.#context = context;
    this.#lookMs = lookMs;
    const timer = setInterval(() => this.renew(), RENEW_MS);
    const unsubscribe = context.notifications.on('cancel', id => {
      if (this.#leases.has(id)) void this.renew();
    });
    this.#stop = () => {
      clearInterval(timer);
      unsubscribe();
    };
  }

  get size(): number {
    return this.#leases.size;
  }

  /** `asked` is a performance.now() before the claim was sent. */
  track(
    claim: Claim,
    { asked, ...context }: { asked: number; signals: JobSignals; log: Logger },
  ): TrackedLease {
    const older = this.#leases.get(claim.id);
    if (older) this.lose(older);
    const lease = { ...claim, ...context, isEnding: false, renewed: asked };
    this.#leases.set(claim.id, lease);
    return lease;
  }

  untrack(claim: Claim): void {
    if (this.#leases.get(claim.id)?.token === claim.token) this.#leases.delete(claim.id);
  }

  /** Call after the end of a job is committed. */
  rememberEnd(job: JobRow, ending: JobEnd): void {
    const { id, kind } = job;
    const { changesFile, runsOnce } = findDefinition(kind) ?? {};
    if (changesFile) this.#ended.set(id, { ending });
    else if (runsOnce && job.runAt !== null) this.#ended.set(id, { run: runEndLost(job) });
    else return;
    if (this.#ended.size <= MAX_ENDED) return;
    for (const oldest of this.#ended.keys()) {
      this.#ended.delete(oldest);
      break;
    }
  }

  /** What rememberEnd() keeps of this job, which a failover may have lost together with its claim. */
  findEnded(id: string): RememberedEnd | undefined {
    return this.#ended.get(id);
  }

  /**
   * Gives up a claim that nobody here works on: its answer was lost, or neither an end nor a release could be written.
   * It could otherwise hold as long as this process lives. It counts as a loss, unless the job had ended.
   */
  abandon({ id, token }: Claim, ended: RememberedEnd = {}): void {
    this.#abandoned.set(token, { ...ended, id, token, until: performance.now() + ABANDONED_MS });
  }

  /**
   * Call before an external effect that a stale worker must not have. Throws LeaseLost if the lease is not held. Asks
   * the database unless the lease was renewed after `since` (performance.now()) and within the last 4 s.
   */
  async assertLeased(claim: Claim, since = 0): Promise<void> {
    const lease = this.#leases.get(claim.id);
    if (lease?.token !== claim.token) throw new LeaseLost(claim.id);
    if (performance.now() - lease.renewed < RENEW_MS + 1_000 && lease.renewed >= since) return;
    await this.#renew([lease]);
    if (this.#leases.get(claim.id) !== lease) throw new LeaseLost(claim.id);
  }

  async renew(): Promise<void> {
    try {
      if (this.#leases.size > 0) {
        await this.#renew([...this.#leases.values()]);
        if (performance.now() - this.#lookedAt >= this.#lookMs) await this.#abandonStrays();
      }
    } catch (error) {
      // While the database is away nobody else can take a lease either; the next renewal tries again.
      this.#context.log[failureLevel(error)]({ err: error }, 'leases could not be renewed');
    }
    for (const claim of this.#abandoned.values())
      await this.#writeAbandoned(claim).catch((error: unknown) =>
        this.#context.log[failureLevel(error)](
          { err: error, job: claim.id },
          'a claim could not be abandoned',
        ),
      );
  }

  stop(): void {
    this.#stop();
  }

  /** Another has the job: aborts its signals with LeaseLost, once. A job that has ended here is no longer tracked. */
  lose(lease: TrackedLease): void {
    if (this.#leases.get(lease.id)?.token !== lease.token) return;
    this.#leases.delete(lease.id);
    this.#context.metrics.leaseLost();
    lease.log.warn('lease lost');
    lease.signals.loseLease(lease.id);
  }

  async #renew(leases: (TrackedLease & { renewed: number })[]): Promise<void> {
    // Taken before the statement is sent: by this clock the lease never ends later than in the database.
    const asked = performance.now();
    const { database, id } = this.#context;
    const held = await renewLease(database.db, id, leases);
    for (const lease of leases) {
      const isCancelled = held.get(lease.id);
      if (isCancelled !== undefined) lease.renewed = asked;
      else if (!lease.isEnding) this.lose(lease);
      if (isCancelled) lease.signals.cancel();
    }
  }

  /**
   * An asynchronous failover may lose the commit that ended or released a job: then it is this worker's again, which
   * renews its lease for its other jobs. What had ended must not be done again: hosts forget runs, and a file may be
   * another one since.
   */
  async #abandonStrays(): Promise<void> {
    const { database, id, log } = this.#context;
    this.#lookedAt = performance.now();
    const claims = await listClaims(database.db, id);
    const strays = claims.filter(claim => this.#leases.get(claim.id)?.token !== claim.token);
    for (const claim of strays) {
      if (!this.#strays.has(claim.token)) continue;
      log.warn(
        { job: claim.id },
        'a claim that was over here holds in the database; it is abandoned',
      );
      this.abandon(claim, this.#ended.get(claim.id));
    }
    this.#strays = new Set(strays.map(({ token }) => token));
  }

  async #writeAbandoned({
    until,
    ending,
    run,
    ...claim
  }: Claim & RememberedEnd & { until: number }): Promise<void> {
    const { database, notifications } = this.#context;
    const stillHolds = ending
      ? await endAgain(database.db, { claim, ending })
      : await abandonClaim(database.db, claim, run);
    if (ending) notifications.publish('job', claim.id);
    if (!stillHolds && performance.now() > until) this.#abandoned.delete(claim.token);
  }
}
