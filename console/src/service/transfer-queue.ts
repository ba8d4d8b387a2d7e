import { useEffect, useReducer } from 'preact/hooks';
import { whenUserLeaves } from './user.ts';

interface Transfer {
  key: number;
  /** One that `waits` has its turn, and then `sends`. What else there is each kind says itself. */
  state: string;
}

/**
 * What this page sends, one after the other, whichever part of the console is looked at meanwhile. `send` returns what changes
 * with its end; of one that was stopped nothing does.
 */
export class TransferQueue<T extends Transfer> {
  #list: readonly T[] = [];
  #next = 1;
  readonly #running = new Map<number, AbortController>();
  readonly #listeners = new Set<() => void>();
  /** What is not sent yet would be lost with the page. Of each queue: a listener that two add is there once. */
  readonly #askToStay = (event: Event) => event.preventDefault();
  readonly #send: (transfer: T, signal: AbortSignal) => Promise<Partial<T>>;

  constructor(send: (transfer: T, signal: AbortSignal) => Promise<Partial<T>>) {
    this.#send = send;
    // They are of the user that chose them, and would be sent as another one.
    whenUserLeaves(() => {
      for (const running of this.#running.values()) running.abort();
      this.#list = [];
      this.#changed();
    });
  }

  get list(): readonly T[] {
    return this.#list;
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  add(make: (key: number) => T): void {
    this.#list = [...this.#list, make(this.#next++)];
    this.#changed();
  }

  change(key: number, changes: Partial<T>): void {
    this.#replace(key, each => ({ ...each, ...changes }));
  }

  /** Ends it, if it is under way, without a result. */
  stop(key: number, changes: Partial<T>): void {
    this.#running.get(key)?.abort();
    this.change(key, changes);
  }

  /** Ends it, if it is under way, and forgets it. */
  remove(key: number): void {
    this.#running.get(key)?.abort();
    this.#list = this.#list.filter(each => each.key !== key);
    this.#changed();
  }

  #replace(key: number, replace: (transfer: T) => T): void {
    this.#list = this.#list.map(each => (each.key === key ? replace(each) : each));
    this.#changed();
  }

  #changed(): void {
    const isSending = this.#list.some(({ state }) => state === 'sends');
    const next = isSending ? undefined : this.#list.find(({ state }) => state === 'waits');
    if (next) return void this.#begin(next);
    for (const listener of this.#listeners) listener();
    if (isSending) addEventListener('beforeunload', this.#askToStay);
    else removeEventListener('beforeunload', this.#askToStay);
  }

  async #begin(transfer: T): Promise<void> {
    const { key } = transfer;
    const stop = new AbortController();
    this.#running.set(key, stop);
    this.#replace(key, each => ({ ...each, state: 'sends' }));
    const changes = await this.#send(transfer, stop.signal);
    if (this.#running.get(key) === stop) this.#running.delete(key);
    if (!stop.signal.aborted) this.change(key, changes);
  }
}

/** The list of a queue, as it is now. */
export function useTransfers<T extends Transfer>(queue: TransferQueue<T>): readonly T[] {
  const [, redraw] = useReducer((n: number) => n + 1, 0);
  useEffect(() => queue.subscribe(() => redraw(undefined)), [queue]);
  return queue.list;
}
