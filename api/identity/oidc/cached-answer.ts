/** Time in which a service that has just failed is not asked again: each request would ask, and wait. */
const PAUSE_MS = 5_000;

/** What another service says, kept for a while: requests that need it meanwhile ask once. */
export class CachedAnswer<T> {
  readonly #ask: () => Promise<T>;
  #known: { value: T; at: number } | undefined;
  #failed: { error: unknown; at: number } | undefined;
  #asking: Promise<T> | undefined;

  constructor(ask: () => Promise<T>) {
    this.#ask = ask;
  }

  /** The answer, at most so old. Throws the error of the last attempt while that was a moment ago. */
  async get(maxAgeMs: number): Promise<T> {
    const now = performance.now();
    if (this.#known && now - this.#known.at < maxAgeMs) return this.#known.value;
    if (this.#failed && now - this.#failed.at < PAUSE_MS) throw this.#failed.error;
    this.#asking ??= this.#askNow().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  async #askNow(): Promise<T> {
    const at = performance.now();
    try {
      const value = await this.#ask();
      this.#known = { value, at };
      this.#failed = undefined;
      return value;
    } catch (error) {
      this.#failed = { error, at: performance.now() };
      throw error;
    }
  }
}
