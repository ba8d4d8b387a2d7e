import type { Database } from '../../shared/database/connect.ts';
import type { Notifications } from '../../shared/database/notifications.ts';
import { RENEW_MS } from '../../shared/jobs/lease.ts';
import type { Logger } from '../../shared/log.ts';
import { type Claim, isLeased, LeaseLost, renewLeases } from './claims.ts';
import type { JobSignals } from './job-signals.ts';
import type { WorkerMetrics } from './worker-metrics.ts';

/** The lease of one job that this worker runs. */
export interface TrackedLease extends Claim {
  signals: JobSignals;
  /** Set before the write that gives the lease up: from then on that write alone tells whether it was lost. */
  isEnding: boolean;
  /** The attempt's. */
  log: Logger;
}

interface RenewerContext {
  database: Database;
  notifications: Notifications;
  log: Logger;
  metrics: WorkerMetrics;
}

/** Renews all leases of a process in one statement every 3 s, and tells their jobs of lost leases and of cancels. */
export class LeaseRenewer {
  readonly #context: RenewerContext;
  readonly #leases = new Map<string, TrackedLease & { renewed: number }>();
  readonly #stop: () => void;

  constructor(context: RenewerContext) {
    this.#context = context;
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

  track(claim: Claim, context: { signals: JobSignals; log: Logger }): TrackedLease {
    const older = this.#leases.get(claim.id);
    if (older) this.lose(older);
    const lease = { ...claim, ...context, isEnding: false, renewed: performance.now() };
    this.#leases.set(claim.id, lease);
    return lease;
  }

  untrack(claim: Claim): void {
    if (this.#leases.get(claim.id)?.token === claim.token) this.#leases.delete(claim.id);
  }

  /**
   * Call before an effect outside the database that must not come from a stale worker. Throws LeaseLost when the lease is not
   * held. Reads the row unless the lease was renewed after `since` (a performance.now()) and within the last 4 s.
   */
  async assertLeased(claim: Claim, since = 0): Promise<void> {
    const lease = this.#leases.get(claim.id);
    if (lease?.token !== claim.token) throw new LeaseLost(claim.id);
    const fresh = performance.now() - lease.renewed < RENEW_MS + 1_000 && lease.renewed >= since;
    if (!fresh && !(await isLeased(this.#context.database.db, claim))) {
      this.lose(lease);
      throw new LeaseLost(claim.id);
    }
  }

  async renew(): Promise<void> {
    const leases = [...this.#leases.values()];
    if (leases.length === 0) return;
    // Before the statement is sent: the lease runs from the database's now(), which is not earlier.
    const asked = performance.now();
    try {
      const renewed = await renewLeases(this.#context.database.db, leases);
      for (const lease of leases) {
        const isCancelled = renewed.get(lease.id);
        if (isCancelled !== undefined) lease.renewed = asked;
        else if (!lease.isEnding) this.lose(lease);
        if (isCancelled) lease.signals.cancel();
      }
    } catch (error) {
      // While the database is away nobody else can take a lease either; the next renewal tries again.
      this.#context.log.warn({ err: error }, 'leases could not be renewed');
    }
  }

  stop(): void {
    this.#stop();
  }

  /** Aborts the job's signals with LeaseLost, once. A job that this worker has ended meanwhile is no longer tracked. */
  lose(lease: TrackedLease): void {
    if (this.#leases.get(lease.id)?.token !== lease.token) return;
    this.#leases.delete(lease.id);
    this.#context.metrics.leaseLost();
    lease.log.warn('lease lost');
    lease.signals.loseLease(lease.id);
  }
}
