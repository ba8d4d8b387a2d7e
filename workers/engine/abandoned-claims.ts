import type { Database } from '../../shared/database/connect.ts';
import { failureLevel } from '../../shared/database/failure-level.ts';
import type { Notifications } from '../../shared/database/notifications.ts';
import type { Logger } from '../../shared/process/log.ts';
import type { Claim } from './claim.ts';
import type { EndsAfterFailover, RememberedEnd } from './ends-after-failover.ts';
import { listClaims } from './leases.ts';
import { abandonClaim, endAgain } from './losses.ts';

export interface ClaimsContext {
  /** The worker's. */
  id: string;
  database: Database;
  notifications: Notifications;
  log: Logger;
}

type AbandonedClaim = Claim & RememberedEnd & { until: number };

/** A claim whose answer was lost may still be committed, within the time-out of statements. */
const ABANDONED_MS = 30_000;

/** Claims in this worker's name that nobody here works on: they could hold as long as this process lives. */
export class AbandonedClaims {
  readonly #context: ClaimsContext;
  readonly #ends: EndsAfterFailover;
  /** By token; `until`: performance.now() until which the claim may appear. */
  readonly #claims = new Map<string, AbandonedClaim>();
  /** Tokens of claims that nothing here worked at when they were last looked for. */
  #strays = new Set<string>();
  #lookedAt = performance.now();
  readonly #lookMs: number;

  /** `lookMs`: what is claimed or ended now is known, or gone, at the next look. */
  constructor(context: ClaimsContext, ends: EndsAfterFailover, lookMs: number) {
    this.#context = context;
    this.#ends = ends;
    this.#lookMs = lookMs;
  }

  /**
   * Gives up a claim: its answer was lost, or neither an end nor a release could be written. It counts as a loss, unless the
   * job had ended.
   */
  add({ id, token }: Claim): void {
    const until = performance.now() + ABANDONED_MS;
    this.#claims.set(token, { ...this.#ends.find(id), id, token, until });
  }

  /**
   * An asynchronous failover may lose the commit that ended or released a job: then it is this worker's again, which
   * renews its lease for its other jobs. Gives up what is found so in two looks.
   */
  async addStrays(isHeld: (claim: Claim) => boolean): Promise<void> {
    if (performance.now() - this.#lookedAt < this.#lookMs) return;
    const { database, id, log } = this.#context;
    this.#lookedAt = performance.now();
    const claims = await listClaims(database.db, id);
    const strays = claims.filter(claim => !isHeld(claim));
    for (const claim of strays) {
      if (!this.#strays.has(claim.token)) continue;
      log.warn(
        { job: claim.id },
        'the database still holds a claim that this worker ended or released; it is abandoned',
      );
      this.add(claim);
    }
    this.#strays = new Set(strays.map(({ token }) => token));
  }

  /** Writes the losses and ends, again until each can appear no more. Never throws. */
  async write(): Promise<void> {
    for (const claim of this.#claims.values())
      await this.#write(claim).catch((error: unknown) =>
        this.#context.log[failureLevel(error)](
          { err: error, job: claim.id },
          'a claim could not be abandoned',
        ),
      );
  }

  async #write({ until, ending, run, ...claim }: AbandonedClaim): Promise<void> {
    const { database, notifications } = this.#context;
    const stillHolds = ending
      ? await endAgain(database.db, { claim, ending })
      : await abandonClaim(database.db, claim, run);
    if (ending) notifications.publish('job', claim.id);
    if (!stillHolds && performance.now() > until) this.#claims.delete(claim.token);
  }
}
