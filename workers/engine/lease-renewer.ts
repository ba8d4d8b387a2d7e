import type { Database } from '../../shared/database/connect.ts';
import { failureLevel } from '../../shared/database/failure-level.ts';
import type { Notifications } from '../../shared/database/notifications.ts';
import { RENEW_MS } from '../../shared/jobs/lease.ts';
import type { Logger } from '../../shared/process/log.ts';
import { AbandonedClaims } from './abandoned-claims.ts';
import { EndsAfterFailover } from './ends-after-failover.ts';
import { type Claim, LeaseLost } from './fencing-token.ts';
import type { JobSignals } from './job-signals.ts';
import { renewLease } from './leases.ts';
import type { WorkerMetrics } from './worker-metrics.ts';

/** The lease of one job that this worker runs. */
export interface TrackedLease extends Claim {
  signals: JobSignals;
  /** Set before the write that ends the claim: from then on only that write tells whether the lease was lost. */
  isEnding: boolean;
  /** The attempt's. */
  log: Logger;
}

interface RenewerContext {
  /** The worker's. */
  id: string;
  database: Database;
  notifications: Notifications;
  log: Logger;
  metrics: WorkerMetrics;
}

/** What is claimed or ended now is known, or gone, at the next look. */
const LOOK_MS = 30_000;

/**
 * Renews this process's lease every 3 s while it has jobs, and reports lost leases and cancels to them. One lease row
 * covers all jobs; each job's row tells whether this worker still has it.
 */
export class LeaseRenewer {
  readonly #context: RenewerContext;
  readonly #leases = new Map<string, TrackedLease & { renewed: number }>();
  readonly ends = new EndsAfterFailover();
  readonly abandoned: AbandonedClaims;
  readonly #stop: () => void;

  constructor(context: RenewerContext, { lookMs = LOOK_MS }: { lookMs?: number } = {}) {
    this.#context = context;
    this.abandoned = new AbandonedClaims(context, this.ends, lookMs);
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
    if (this.#holds(claim)) this.#leases.delete(claim.id);
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
        await this.abandoned.addStrays(claim => this.#holds(claim));
      }
    } catch (error) {
      // While the database is away nobody else can take a lease either; the next renewal tries again.
      this.#context.log[failureLevel(error)]({ err: error }, 'leases could not be renewed');
    }
    await this.abandoned.write();
  }

  stop(): void {
    this.#stop();
  }

  /** Another has the job: aborts its signals with LeaseLost, once. A job that has ended here is no longer tracked. */
  lose(lease: TrackedLease): void {
    if (!this.#holds(lease)) return;
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

  #holds({ id, token }: Claim): boolean {
    return this.#leases.get(id)?.token === token;
  }
}
