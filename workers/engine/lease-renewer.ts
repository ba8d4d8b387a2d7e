import type { Database } from '../../shared/database/connect.ts';
import type { Notifications } from '../../shared/database/notifications.ts';
import { RENEW_MS } from '../../shared/jobs/lease.ts';
import type { Logger } from '../../shared/log.ts';
import { type Claim, isLeased, LeaseLost, renewLeases } from './claims.ts';
import type { WorkerMetrics } from './worker-metrics.ts';

/** One job in this worker's hands. */
export interface TrackedLease extends Claim {
  /** Aborted with LeaseLost when the lease is gone: nothing may be written or sent any more. */
  lost: AbortController;
  /** Aborted when the client asked for the end. */
  cancel: AbortController;
  /** Set before the write that gives the lease up: from then on that write alone tells whether it was lost. */
  isEnding: boolean;
  /** The attempt's. */
  log: Logger;
}

/** Renews all leases of a process in one statement every 3 s, and passes on what the rows say. */
export class LeaseRenewer {
  readonly #database: Database;
  readonly #log: Logger;
  readonly #metrics: WorkerMetrics;
  readonly #held = new Map<string, TrackedLease & { renewed: number }>();
  readonly #stop: () => void;

  constructor(context: {
    database: Database;
    notifications: Notifications;
    log: Logger;
    metrics: WorkerMetrics;
  }) {
    this.#database = context.database;
    this.#log = context.log;
    this.#metrics = context.metrics;
    const timer = setInterval(() => this.renew(), RENEW_MS);
    const unsubscribe = context.notifications.on('cancel', id => {
      if (this.#held.has(id)) void this.renew();
    });
    this.#stop = () => {
      clearInterval(timer);
      unsubscribe();
    };
  }

  get size(): number {
    return this.#held.size;
  }

  track(claim: Claim, { cancelled, log }: { cancelled: boolean; log: Logger }): TrackedLease {
    const older = this.#held.get(claim.id);
    if (older) this.lose(older);
    const held = {
      ...claim,
      log,
      lost: new AbortController(),
      cancel: new AbortController(),
      isEnding: false,
      renewed: performance.now(),
    };
    if (cancelled) held.cancel.abort();
    this.#held.set(claim.id, held);
    return held;
  }

  untrack(claim: Claim): void {
    if (this.#held.get(claim.id)?.token === claim.token) this.#held.delete(claim.id);
  }

  /**
   * Call before an effect outside that must not come from a stale worker: throws LeaseLost when the lease is not held.
   * The row is asked unless it was renewed since `since` (a performance.now()) and within the last renewal's time.
   */
  async assertLeased(claim: Claim, since = 0): Promise<void> {
    const held = this.#held.get(claim.id);
    if (!held || held.token !== claim.token || held.lost.signal.aborted)
      throw new LeaseLost(claim.id);
    const fresh = performance.now() - held.renewed < RENEW_MS + 1_000 && held.renewed >= since;
    if (!fresh && !(await isLeased(this.#database.db, claim))) {
      this.lose(held);
      throw new LeaseLost(claim.id);
    }
  }

  async renew(): Promise<void> {
    const claims = [...this.#held.values()];
    if (claims.length === 0) return;
    // Before the statement is sent: the lease runs from the database's now(), which is not earlier.
    const asked = performance.now();
    try {
      const still = await renewLeases(this.#database.db, claims);
      for (const held of claims) {
        const found = still.get(held.id);
        if (found) held.renewed = asked;
        else if (!held.isEnding) this.lose(held);
        if (found?.cancel) held.cancel.abort();
      }
    } catch (error) {
      // While the database is away nobody else can take a lease either: the next renewal will tell.
      this.#log.warn({ err: error }, 'leases could not be renewed');
    }
  }

  stop(): void {
    this.#stop();
  }

  /** Tells, once, that the lease is gone. */
  lose(held: TrackedLease): void {
    // A job that ended in this worker's hands meanwhile is no longer held, and is not lost.
    if (this.#held.get(held.id)?.token !== held.token) return;
    this.#held.delete(held.id);
    this.#metrics.leaseLost();
    held.log.warn('lease lost');
    held.lost.abort(new LeaseLost(held.id));
  }
}
