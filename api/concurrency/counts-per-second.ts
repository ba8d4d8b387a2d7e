/** How often something happened in this second, by key, in this process. */
export class CountsPerSecond {
  #second = 0;
  #counts = new Map<string, number>();

  /** Counts one more. */
  add(key: string): number {
    this.#turn();
    const count = (this.#counts.get(key) ?? 0) + 1;
    this.#counts.set(key, count);
    return count;
  }

  has(key: string): boolean {
    this.#turn();
    return this.#counts.has(key);
  }

  get isEmpty(): boolean {
    return this.#counts.size === 0;
  }

  #turn(): void {
    const second = Math.floor(performance.now() / 1_000);
    if (second === this.#second) return;
    this.#second = second;
    this.#counts = new Map();
  }
}
