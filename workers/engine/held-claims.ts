import { failureLevel } from '../../shared/database/failure-level.ts';
import { RENEW_MS } from '../../shared/jobs/lease.ts';
import { READER_LOST_MS } from '../../shared/jobs/reader-signs.ts';
import type { Logger } from '../../shared/process/log.ts';
import { AbandonedClaims, type ClaimsContext } from './abandoned-claims.ts';
import { type Claim, LeaseRevoked } from './claim.ts';
import { EndsAfterFailover } from './ends-after-failover.ts';
import type { JobSignals } from './job-signals.ts';
import { renewLease } from './leases.ts';
import type { WorkerMetrics } from './worker-metrics.ts';

/** The claim of a job that this worker runs. */
export interface HeldClaim extends Claim {
  signals: JobSignals;
  /** Set before the write that ends the claim: from then on only that write tells whether the lease was revoked. */
  isEnding: boolean;
  /** The attempt's. */
  log: Logger;
}

interface TrackedClaim extends HeldClaim {
  /** performance.now() of the last renewal. */
  renewed: number;
  /** The last sign of life of who reads the job's streamed output, and for how long none has followed. */
  readerSeen: number | undefined;
  unreadMs: number;
}

interface HeldClaimsContext extends ClaimsContext {
  metrics: WorkerMetrics;
}

interface HeldClaimsOptions {
  /** Default 30,000. */
  lookMs?: number;
  /** Default 15,000. */
  readerLostMs?: number;
}

/** What is claimed or ended now is known, or gone, at the next look. */
const LOOK_MS = 30_000;

/**
 * The claims of this worker. Renews its lease every 3 s while it has any, and reports revocations and cancels to them. One
 * lease row covers all jobs; each job's row tells whether this worker still has it.
 */
export class HeldClaims {
  readonly #context: HeldClaimsContext;
  readonly #claims = new Map<string, TrackedClaim>();
  readonly #readerLostMs: number;
  readonly ends = new EndsAfterFailover();
  readonly abandoned: AbandonedClaims;
  readonly #stop: () => void;

  constructor(
    context: HeldClaimsContext,
    { lookMs = LOOK_MS, readerLostMs = READER_LOST_MS }: HeldClaimsOptions = {},
  ) {
    this.#context = context;
    this.#readerLostMs = readerLostMs;
    this.abandoned = new AbandonedClaims(context, this.ends, lookMs);
    const timer = setInterval(() => this.renew(), RENEW_MS);
    const unsubscribe = context.notifications.on('cancel', id => {
      if (this.#claims.has(id)) void this.renew();
    });
    this.#stop = () => {
      clearInterval(timer);
      unsubscribe();
    };
  }

  get size(): number {
    return this.#claims.size;
  }

  /** `sentAt` is a performance.now() before the claim was sent. */
  track(
    claim: Claim,
    { sentAt, ...context }: { sentAt: number; signals: JobSignals; log: Logger },
  ): HeldClaim {
    const older = this.#claims.get(claim.id);
    if (older) this.revoke(older);
    const reader = { readerSeen: undefined, unreadMs: 0 };
    const held = { ...claim, ...context, ...reader, isEnding: false, renewed: sentAt };
    this.#claims.set(claim.id, held);
    return held;
  }

  untrack(claim: Claim): void {
    if (this.#holds(claim)) this.#claims.delete(claim.id);
  }

  /**
   * Call before an external effect that a stale worker must not have. Throws LeaseRevoked if the claim is not held. Asks
   * the database unless the lease was renewed after `since` (performance.now()) and within the last 4 s.
   */
  async assertLeased(claim: Claim, since = 0): Promise<void> {
    const held = this.#claims.get(claim.id);
    if (held?.token !== claim.token) throw new LeaseRevoked(claim.id);
    if (performance.now() - held.renewed < RENEW_MS + 1_000 && held.renewed >= since) return;
    await this.#renew([held]);
    if (this.#claims.get(claim.id) !== held) throw new LeaseRevoked(claim.id);
  }

  async renew(): Promise<void> {
    try {
      if (this.#claims.size > 0) {
        await this.#renew([...this.#claims.values()]);
        await this.abandoned.addStrays(claim => this.#holds(claim));
      }
    } catch (error) {
      // While the database is unreachable nobody else can take a lease either; the next renewal tries again.
      this.#context.log[failureLevel(error)]({ err: error }, 'leases could not be renewed');
    }
    await this.abandoned.write();
  }

  stop(): void {
    this.#stop();
  }

  /** Another has the job: aborts its signals with LeaseRevoked, once. A job that has ended here is no longer tracked. */
  revoke(claim: HeldClaim): void {
    if (!this.#holds(claim)) return;
    this.#claims.delete(claim.id);
    this.#context.metrics.leaseRevoked();
    claim.log.warn('lease revoked');
    claim.signals.revokeLease(claim.id);
  }

  async #renew(claims: TrackedClaim[]): Promise<void> {
    // Taken before the statement is sent: by this clock the lease never ends later than in the database.
    const sentAt = performance.now();
    const { database, id } = this.#context;
    const held = await renewLease(database.db, id, claims);
    for (const claim of claims) {
      const row = held.get(claim.id);
      if (!row) {
        if (!claim.isEnding) this.revoke(claim);
        continue;
      }
      lookForReader(claim, row.readerSeen, sentAt);
      claim.renewed = sentAt;
      if (row.isCancelled || claim.unreadMs > this.#readerLostMs) claim.signals.cancel();
    }
  }

  #holds({ id, token }: Claim): boolean {
    return this.#claims.get(id)?.token === token;
  }
}

/** Counts the time without a sign of the reader. While the database is unreachable nobody can give one. */
function lookForReader(claim: TrackedClaim, readerSeen: Date | null, now: number): void {
  const seen = readerSeen?.getTime();
  const isSilent = seen !== undefined && seen === claim.readerSeen;
  claim.unreadMs = isSilent ? claim.unreadMs + Math.min(now - claim.renewed, 2 * RENEW_MS) : 0;
  claim.readerSeen = seen;
}
