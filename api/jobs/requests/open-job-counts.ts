import { LRUCache } from 'lru-cache';

const TTL_MS = 1_000;
const MAX_USERS = 10_000;
/** Distance from the limit within which every start counts: concurrent starts are in no count yet. */
const NEAR = 200;

/**
 * Remembers for a second how many jobs a user may start before the open ones are counted again, as a count reads each
 * of them. That is half of what is left to the limit: the rest is for the other API processes.
 */
export class OpenJobCounts {
  readonly #limit: number;
  readonly #uncounted: LRUCache<string, { left: number }>;

  /** `limit` 0: none. A count is remembered for `ttl` ms. */
  constructor(limit: number, ttl = TTL_MS) {
    this.#limit = limit;
    this.#uncounted = new LRUCache({ max: MAX_USERS, ttl });
  }

  /** The limit for the user's next job; 0 where the user is known to be far from it. */
  nextLimit(owner: string): number {
    const known = this.#uncounted.get(owner);
    if (!known || known.left === 0) return this.#limit;
    known.left--;
    return 0;
  }

  /** Notes how many open jobs the user had before the present start. */
  counted(owner: string, open: number): void {
    const left = Math.floor((this.#limit - open - NEAR) / 2);
    this.#uncounted.set(owner, { left: Math.max(0, left) });
  }
}
