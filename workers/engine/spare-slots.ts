/** The slots of a queue at this worker. Jobs own them; work that can be restarted borrows free ones. */
export class SpareSlots {
  readonly #count: number;
  /** Jobs that run. */
  #jobs = 0;
  /** The work that borrows slots, in the order in which it began. */
  readonly #borrowed = new Set<AbortController>();
  readonly #stopping: AbortSignal;
  /** Lends no more meanwhile. */
  isDraining = false;

  /** `stopping` ends what was borrowed, too. */
  constructor(count: number, stopping: AbortSignal) {
    this.#count = count;
    this.#stopping = stopping;
  }

  get isFree(): boolean {
    return !this.isDraining && this.#jobs + this.#borrowed.size < this.#count;
  }

  /** Runs a job in its slot, which is taken back where it is lent. */
  async occupy<T>(job: () => Promise<T>): Promise<T> {
    this.#jobs++;
    for (const borrower of [...this.#borrowed].reverse()) {
      if (this.#jobs + this.#borrowed.size <= this.#count) break;
      this.#borrowed.delete(borrower);
      borrower.abort(new Error('a job needs the slot'));
    }
    try {
      return await job();
    } finally {
      this.#jobs--;
    }
  }

  /** Runs work in a free slot, until the signal is aborted; does nothing where none is free. */
  async borrow(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    if (!this.isFree) return;
    const borrower = new AbortController();
    this.#borrowed.add(borrower);
    try {
      await work(AbortSignal.any([borrower.signal, this.#stopping]));
    } finally {
      this.#borrowed.delete(borrower);
    }
  }
}
