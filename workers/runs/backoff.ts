interface Pause {
  /** performance.now() at its end. */
  until: number;
  ms: number;
}

/**
 * Exponential backoff by key: each failure doubles the key's pause. Keeps at most `most` keys; the one that failed
 * longest ago is dropped and starts anew.
 */
export class Backoff {
  readonly #pauses = new Map<string, Pause>();
  readonly #limits: { firstMs: number; longestMs: number; most: number };

  constructor(limits: { firstMs: number; longestMs: number; most: number }) {
    this.#limits = limits;
  }

  fail(key: string): void {
    const { firstMs, longestMs, most } = this.#limits;
    const last = this.#pauses.get(key);
    const ms = last ? Math.min(2 * last.ms, longestMs) : firstMs;
    this.#pauses.delete(key);
    this.#pauses.set(key, { until: performance.now() + ms, ms });
    const [oldest] = this.#pauses.keys();
    if (this.#pauses.size > most && oldest !== undefined) this.#pauses.delete(oldest);
  }

  reset(key: string): void {
    this.#pauses.delete(key);
  }

  /** The keys whose pause has not ended. */
  paused(): string[] {
    const now = performance.now();
    return [...this.#pauses].filter(([, { until }]) => until > now).map(([key]) => key);
  }
}
