import { unavailable } from '../../shared/errors/errors.ts';

interface Waiter {
  user: string;
  bytes: number;
  grant(): void;
}

/**
 * A memory budget in bytes, per user and in all. A request that exceeds it waits before anything is read, so that memory
 * does not grow with the number of large bodies and slow readers.
 */
export class ByteBudget {
  readonly #limits: { perUser: number; inAll: number; waitMs: number };
  readonly #used = new Map<string, number>();
  #total = 0;
  #waiters: Waiter[] = [];

  constructor(limits: { perUser: number; inAll: number; waitMs: number }) {
    this.#limits = limits;
  }

  /**
   * Reserves bytes and resolves with the function that releases them (further calls do nothing). Throws `unavailable`
   * after `waitMs`, and the signal's reason when it aborts.
   */
  async reserve(user: string, bytes: number, signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    const wanted = Math.min(bytes, this.#limits.perUser);
    await new Promise<void>((resolve, reject) => {
      const settle = (then: () => void) => {
        clearTimeout(timer);
        signal.removeEventListener('abort', abort);
        then();
      };
      const giveUp = (error: unknown) => {
        this.#waiters = this.#waiters.filter(other => other !== waiter);
        settle(() => reject(error));
        this.#grant();
      };
      const abort = () => giveUp(signal.reason);
      const timer = setTimeout(() => giveUp(tooBusy()), this.#limits.waitMs);
      const waiter = { user, bytes: wanted, grant: () => settle(resolve) };
      signal.addEventListener('abort', abort, { once: true });
      this.#waiters.push(waiter);
      this.#grant();
    });
    let isLeased = true;
    return () => {
      if (!isLeased) return;
      isLeased = false;
      this.#add(user, -wanted);
      this.#grant();
    };
  }

  /** First come, first served, but a user at the own limit does not block others. */
  #grant(): void {
    for (const waiter of [...this.#waiters]) {
      if ((this.#used.get(waiter.user) ?? 0) + waiter.bytes > this.#limits.perUser) continue;
      if (this.#total + waiter.bytes > this.#limits.inAll) return;
      this.#waiters = this.#waiters.filter(other => other !== waiter);
      this.#add(waiter.user, waiter.bytes);
      waiter.grant();
    }
  }

  #add(user: string, bytes: number): void {
    this.#total += bytes;
    const used = (this.#used.get(user) ?? 0) + bytes;
    if (used === 0) this.#used.delete(user);
    else this.#used.set(user, used);
  }
}

const tooBusy = () =>
  unavailable(
    'too many large values are sent or fetched at once.',
    'Send or fetch fewer at the same time.',
    5,
  );
