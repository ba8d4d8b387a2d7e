import type { Database } from '../../shared/database/connect.ts';
import type { Notifications } from '../../shared/database/notifications.ts';
import type { JobRow } from '../../shared/database/schema.ts';
import { RENEW_MS } from '../../shared/jobs/lease.ts';
import type { Logger } from '../../shared/process/log.ts';
import { type Claim, LeaseLost } from './fencing-token.ts';
import type { JobSignals } from './job-signals.ts';
import { listClaims, renewLease } from './leases.ts';
import { abandonClaim } from './losses.ts';
import type { WorkerMetrics } from './worker-metrics.ts';

/** The lease of one job that this worker runs. */
export interface TrackedLease extends Claim {
  signals: JobSignals;
  /** Set before the write that ends the claim: from then on only that write tells whether the lease was lost. */
  isEnding: boolean;
  /** The attempt's. */
  log: Logger;
}

/** What a job's row tells of its run on a host. */
type RunRecord = Pick<JobRow, 'runAt' | 'runPlace' | 'runRemoved'>;

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
const MAX_ENDED_RUNS = 10_000;

/**
 * Renews this process's lease every 3 s while it has jobs, and reports lost leases and cancels to them. One lease row
 * covers all jobs; each job's row tells whether this worker still has it.
 */
export class LeaseRenewer {
  readonly #context: RenewerContext;
  readonly #leases = new Map<string, TrackedLease & { renewed: number }>();
  /** By token: performance.now() until which the claim may appear. */
  readonly #abandoned = new Map<string, Claim & { until: number; run?: RunRecord }>();
  /** By token: the runs of the commands that ended here last. Their hosts forget them soon. */
  readonly #endedRuns = new Map<string, RunRecord>();
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
  recordEnd({ token }: Claim, { kind, runAt, runPlace }: JobRow): void {
    if (kind !== 'command' || runAt === null) return;
    this.#endedRuns.set(token, { runAt, runPlace, runRemoved: true });
    if (this.#endedRuns.size <= MAX_ENDED_RUNS) return;
    for (const oldest of this.#endedRuns.keys()) {
      this.#endedRuns.delete(oldest);
      break;
    }
  }

  /**
   * Gives up a claim that nobody here works on: its answer was lost, or neither an end nor a release could be written.
   * It could otherwise hold as long as this process lives. It counts as a loss. `run` is written to the row with that.
   */
  abandon({ id, token }: Claim, run?: RunRecord): void {
    this.#abandoned.set(token, { id, token, until: performance.now() + ABANDONED_MS, run });
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
      for (const claim of this.#abandoned.values()) await this.#writeAbandoned(claim);
    } catch (error) {
      // While the database is away nobody else can take a lease either; the next renewal tries again.
      this.#context.log.warn({ err: error }, 'leases could not be renewed');
    }
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
   * renews its lease for its other jobs. A command that had ended would run again where its host has forgotten it, so
   * its run counts as removed: nobody requests it then.
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
      this.abandon(claim, this.#endedRuns.get(claim.token));
    }
    this.#strays = new Set(strays.map(({ token }) => token));
  }

  async #writeAbandoned(claim: Claim & { until: number; run?: RunRecord }): Promise<void> {
    const stillHolds = await abandonClaim(this.#context.database.db, claim, claim.run);
    if (!stillHolds && performance.now() > claim.until) this.#abandoned.delete(claim.token);
  }
}
