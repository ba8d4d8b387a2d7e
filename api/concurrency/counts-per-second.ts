/** How often something happened in this second and in the one before, by key, in this process. */
export class CountsPerSecond {
  #second = 0;
  #counts = new Map<string, number>();
  #before = new Map<string, number>();

  /** Counts one more. How many these are in this second. */
  add(key: string): number {
    this.#turn();
    const count = (this.#counts.get(key) ?? 0) + 1;
    this.#counts.set(key, count);
    return count;
  }

  /** Whether it happened in this second. */
  has(key: string): boolean {
    this.#turn();
    return this.#counts.has(key);
  }

  /** The count in that of both seconds in which it happened more often. */
  peak(key: string): number {
    this.#turn();
    return Math.max(this.#counts.get(key) ?? 0, this.#before.get(key) ?? 0);
  }

  /** Whether nothing happened lately. */
  get isEmpty(): boolean {
    return this.#counts.size + this.#before.size === 0;
  }

  #turn(): void {
    const second = Math.floor(performance.now() / 1_000);
    if (second === this.#second) return;
    this.#before = second === this.#second + 1 ? this.#counts : new Map();
    this.#counts = new Map();
    this.#second = second;
  }
}
