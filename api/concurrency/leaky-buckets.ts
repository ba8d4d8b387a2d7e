import { LRUCache } from 'lru-cache';

/** Limit on the parties that are remembered: the latest. */
const MAX_PARTIES = 10_000;

/**
 * How much of something each party may do, in this process: so much at once, and one in each interval over time. Leaky buckets as
 * meters, by the generic cell rate algorithm (ITU-T I.371).
 */
export class LeakyBuckets {
  readonly #atOnce: number;
  readonly #seconds: number;
  /** When the bucket of each party is empty again, in seconds of performance.now(). */
  readonly #empty = new LRUCache<string, number>({ max: MAX_PARTIES });

  constructor({ atOnce, seconds }: { atOnce: number; seconds: number }) {
    this.#atOnce = atOnce;
    this.#seconds = seconds;
  }

  /** Counts so many more. 0, or in how many whole seconds there is room, where it is too many: then none is counted. */
  add(party: string, count = 1): number {
    const now = performance.now() / 1_000;
    const empty = Math.max(now, this.#empty.get(party) ?? 0) + count * this.#seconds;
    const wait = empty - now - this.#atOnce * this.#seconds;
    if (wait > 0) return Math.ceil(wait);
    this.#empty.set(party, empty);
    return 0;
  }
}
