import type { JobRow } from '../../shared/database/schema.ts';
import { findDefinition } from '../../shared/jobs/catalog.ts';
import { isUnanswered } from '../host-agent/protocol/no-answer.ts';

/** How long a connection is tried, from the first try or from its loss. */
const CONNECT_FOR_MS = 60_000;
/** How long a job without a connection keeps its slot between tries: one absent host must not fill all slots. */
const KEEP_SLOT_MS = 4_000;
/** How long a connection must last for its work to have the full time again to reconnect. */
const STABLE_MS = 5_000;
/** Like STABLE_MS, for a host that stopped answering before: longer than any answer time-out. */
const ANSWERED_MS = 200_000;
const LONGEST_PAUSE_MS = 4_000;

/** What follows a failure: it is thrown, the job yields its slot, or the host is tried again after a pause. */
export type NextTry = 'throw' | 'yield' | { pauseMs: number };

/** How long the host of a job has been unreachable, over several attempts, and what follows from that. */
export class Outage {
  /** performance.now() when this attempt began to connect, or lost the last stable connection. */
  #since = performance.now();
  /** For how long earlier attempts at the job tried before they yielded their slot. */
  #earlierMs: number;
  readonly #keepsSlot: boolean;
  #connectedAt: number | undefined;
  #wasSilent = false;
  #failures = 0;
  #isHostUnreachable = true;

  constructor({ unreachableSince, kind }: Pick<JobRow, 'unreachableSince' | 'kind'>) {
    this.#earlierMs = unreachableSince ? Date.now() - unreachableSince.getTime() : 0;
    this.#keepsSlot = findDefinition(kind)?.keepsSlotWhenUnreachable === true;
  }

  /** Since when the host has been unreachable. */
  get began(): Date {
    return new Date(Date.now() - this.#unreachableMs);
  }

  /** The number of failures since the last stable connection. */
  get failures(): number {
    return this.#failures;
  }

  /** Whether the last failure is the host's absence or silence, and not the loss of a connection that worked. */
  get isHostUnreachable(): boolean {
    return this.#isHostUnreachable;
  }

  /** `userLoggedInAt`: performance.now() when the session's user made the connection, where only they can. */
  connected(userLoggedInAt?: number): void {
    this.#connectedAt = performance.now();
    // The host was not unreachable while it waited for its user. One that is silent after the login is.
    const isLoginOfOutage =
      userLoggedInAt !== undefined && this.#connectedAt - userLoggedInAt < this.#unreachableMs;
    if (isLoginOfOutage) this.#earlierMs = 0;
  }

  /** Tells what follows a failure to connect, or one over the connection, that another connection may mend. */
  failed(error: unknown): NextTry {
    const connectedAt = this.#connectedAt;
    this.#connectedAt = undefined;
    const isSilent = connectedAt !== undefined && isUnanswered(error);
    const wasUnreachable = this.#wasSilent || this.#earlierMs > 0;
    this.#wasSilent = isSilent;
    this.#isHostUnreachable = connectedAt === undefined || isSilent;
    const stableMs = isSilent && wasUnreachable ? ANSWERED_MS : STABLE_MS;
    if (connectedAt !== undefined && performance.now() - connectedAt > stableMs) this.#begin();
    const pauseMs = Math.min(250 * 2 ** this.#failures, LONGEST_PAUSE_MS);
    this.#failures++;
    if (this.#unreachableMs > CONNECT_FOR_MS) return 'throw';
    const isLong = isSilent || performance.now() - this.#since > KEEP_SLOT_MS;
    if (isLong && !this.#keepsSlot) return 'yield';
    // Jittered, so that the jobs of a host that comes back do not all connect at once.
    return { pauseMs: pauseMs * (0.5 + Math.random()) };
  }

  get #unreachableMs(): number {
    return this.#earlierMs + performance.now() - this.#since;
  }

  #begin(): void {
    this.#since = performance.now();
    this.#earlierMs = 0;
    this.#failures = 0;
  }
}
