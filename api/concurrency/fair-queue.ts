import { LRUCache } from 'lru-cache';

/** Who a task is done for. */
export interface Party {
  account: string;
  address: string;
}

interface FairQueueLimits {
  /** Tasks that run at once. */
  atOnce: number;
  /** Those of one address that run at once. */
  atOncePerAddress: number;
  /** Tasks that wait or run, of one account, of one address and in all: a further one is refused. */
  perAccount: number;
  perAddress: number;
  inAll: number;
}

interface Waiter {
  party: Party;
  begin(): void;
  refuse(error: Error): void;
}

/** Parties whose last turn is known. */
const MAX_KNOWN = 1_000;

/**
 * Runs few tasks at once and keeps few waiting. The turn is that of the address, and of its accounts the one, that had none
 * for the longest time: so who comes first waits for one task of each other address at most, however many each has. Where
 * all places are taken, the address with most waiting tasks gives one up to an address with fewer.
 */
export class FairQueue {
  readonly #limits: FairQueueLimits;
  readonly #refusal: () => Error;
  /** By account and by address: how many there are, and how many run. */
  readonly #present = new Map<string, number>();
  readonly #running = new Map<string, number>();
  readonly #lastTurns = new LRUCache<string, number>({ max: MAX_KNOWN });
  #waiting: Waiter[] = [];
  #turns = 0;

  /** `refusal` makes the error for a task that finds no place. */
  constructor(limits: FairQueueLimits, refusal: () => Error) {
    this.#limits = limits;
    this.#refusal = refusal;
  }

  /** Takes a place for as long as the work lasts, which waits for nobody's turn. Throws the refusal when there is no place. */
  async hold<T>(party: Party, work: () => Promise<T>): Promise<T> {
    this.#enter(party);
    try {
      return await work();
    } finally {
      for (const key of keysOf(party)) add(this.#present, key, -1);
    }
  }

  /** Takes a place, and does the task when its turn has come. */
  run<T>(party: Party, task: () => Promise<T>): Promise<T> {
    return this.hold(party, async () => {
      await this.#turnOf(party);
      try {
        return await task();
      } finally {
        add(this.#running, addressOf(party), -1);
        add(this.#running, ALL, -1);
        this.#beginNext();
      }
    });
  }

  #enter(party: Party): void {
    const { perAccount, perAddress, inAll } = this.#limits;
    const present = (key: string) => this.#present.get(key) ?? 0;
    if (present(accountOf(party)) >= perAccount || present(addressOf(party)) >= perAddress)
      throw this.#refusal();
    if (present(ALL) >= inAll) this.#makePlace(present(addressOf(party)));
    for (const key of keysOf(party)) add(this.#present, key, 1);
  }

  /** Refuses the newest waiting task of the address that has most, unless that address has at most one more than `own`. */
  #makePlace(own: number): void {
    const counts = new Map<string, number>();
    let longest: Waiter | undefined;
    for (const waiter of this.#waiting) {
      const key = addressOf(waiter.party);
      add(counts, key, 1);
      const most = longest ? (counts.get(addressOf(longest.party)) ?? 0) : 0;
      if ((counts.get(key) ?? 0) >= most) longest = waiter;
    }
    if (!longest || (counts.get(addressOf(longest.party)) ?? 0) <= own + 1) throw this.#refusal();
    this.#waiting = this.#waiting.filter(waiter => waiter !== longest);
    longest.refuse(this.#refusal());
  }

  #turnOf(party: Party): Promise<void> {
    return new Promise((begin, refuse) => {
      this.#waiting.push({ party, begin, refuse });
      this.#beginNext();
    });
  }

  #beginNext(): void {
    const { atOnce, atOncePerAddress } = this.#limits;
    while ((this.#running.get(ALL) ?? 0) < atOnce) {
      let next: Waiter | undefined;
      for (const waiter of this.#waiting) {
        if ((this.#running.get(addressOf(waiter.party)) ?? 0) >= atOncePerAddress) continue;
        if (!next || this.#isBefore(waiter.party, next.party)) next = waiter;
      }
      if (!next) return;
      const { party, begin } = next;
      this.#waiting = this.#waiting.filter(waiter => waiter !== next);
      this.#turns++;
      for (const key of keysOf(party)) this.#lastTurns.set(key, this.#turns);
      add(this.#running, addressOf(party), 1);
      add(this.#running, ALL, 1);
      begin();
    }
  }

  #isBefore(a: Party, b: Party): boolean {
    const compare = (key: (party: Party) => string) =>
      (this.#lastTurns.get(key(a)) ?? 0) - (this.#lastTurns.get(key(b)) ?? 0);
    return (compare(addressOf) || compare(accountOf)) < 0;
  }
}

const ALL = 'all';
const accountOf = ({ account }: Party) => `account ${account}`;
const addressOf = ({ address }: Party) => `address ${address}`;
const keysOf = (party: Party) => [accountOf(party), addressOf(party), ALL];

function add(counts: Map<string, number>, key: string, n: number): void {
  const count = (counts.get(key) ?? 0) + n;
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
}
