export interface Transfer {
  key: number;
  /** One that `waits` has its turn, and then `sends`. What else there is each kind says itself. */
  state: string;
}

/** Sends one after the other. `send` returns what changes with its end; of one that was stopped nothing does. */
export class TransferQueue<T extends Transfer> {
  #list: readonly T[] = [];
  #next = 1;
  readonly #running = new Map<number, AbortController>();
  readonly #listeners = new Set<() => void>();
  readonly #send: (transfer: T, signal: AbortSignal) => Promise<Partial<T>>;

  constructor(send: (transfer: T, signal: AbortSignal) => Promise<Partial<T>>) {
    this.#send = send;
  }

  get list(): readonly T[] {
    return this.#list;
  }

  get isSending(): boolean {
    return this.#list.some(({ state }) => state === 'sends');
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  // There may be tens of thousands: each of these makes the list once, and tells of it once.

  add<Given>(given: readonly Given[], make: (key: number, given: Given) => T): void {
    this.#list = [...this.#list, ...given.map(one => make(this.#next++, one))];
    this.#changed();
  }

  change(keys: readonly number[], changes: Partial<T>): void {
    this.#replace(keys, each => ({ ...each, ...changes }));
  }

  /** Ends those that are under way, and forgets them. */
  remove(keys: readonly number[]): void {
    const removed = new Set(keys);
    for (const key of keys) this.#running.get(key)?.abort();
    this.#list = this.#list.filter(({ key }) => !removed.has(key));
    this.#changed();
  }

  /** Ends it, if it is under way, without a result. */
  stop(key: number, changes: Partial<T>): void {
    this.#running.get(key)?.abort();
    this.change([key], changes);
  }

  #replace(keys: readonly number[], replace: (transfer: T) => T): void {
    const replaced = new Set(keys);
    this.#list = this.#list.map(each => (replaced.has(each.key) ? replace(each) : each));
    this.#changed();
  }

  #changed(): void {
    const next = this.isSending ? undefined : this.#list.find(({ state }) => state === 'waits');
    if (next) return void this.#begin(next);
    for (const listener of this.#listeners) listener();
  }

  async #begin(transfer: T): Promise<void> {
    const { key } = transfer;
    const stop = new AbortController();
    this.#running.set(key, stop);
    this.#replace([key], each => ({ ...each, state: 'sends' }));
    const changes = await this.#send(transfer, stop.signal);
    if (this.#running.get(key) === stop) this.#running.delete(key);
    if (!stop.signal.aborted) this.change([key], changes);
  }
}
