interface Pause {
  /** performance.now() until which it is left alone. */
  until: number;
  ms: number;
}

/**
 * What is left alone for a while after it failed, each time twice as long. Of more than `most` the ones that failed
 * longest ago are no longer remembered, and so begin anew.
 */
export class Backoff {
  readonly #pauses = new Map<string, Pause>();
  readonly #limits: { firstMs: number; longestMs: number; most: number };

  constructor(limits: { firstMs: number; longestMs: number; most: number }) {
    this.#limits = limits;
  }

  note(name: string): void {
    const { firstMs, longestMs, most } = this.#limits;
    const last = this.#pauses.get(name);
    const ms = last ? Math.min(2 * last.ms, longestMs) : firstMs;
    this.#pauses.delete(name);
    this.#pauses.set(name, { until: performance.now() + ms, ms });
    const [oldest] = this.#pauses.keys();
    if (this.#pauses.size > most && oldest !== undefined) this.#pauses.delete(oldest);
  }

  forget(name: string): void {
    this.#pauses.delete(name);
  }

  /** Those that are left alone now. */
  names(): string[] {
    const now = performance.now();
    return [...this.#pauses].filter(([, { until }]) => until > now).map(([name]) => name);
  }
}
