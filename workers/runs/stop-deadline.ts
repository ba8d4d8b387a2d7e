/** An agent that answers stops a run within 6 s, on a busy host within a little more. */
const WAIT_MS = 15_000;
/** Of a stopped run this much output may be in flight, besides what its host keeps. A run that prints more was not stopped. */
const IN_FLIGHT = 16 << 20;
/** Nor was one that goes on to print less than this in WAIT_MS: what the host kept comes faster. */
const TRICKLE = 64 << 10;

/**
 * How long the host may take to stop a run, from the abort of `unwanted` on. Output extends the deadline, as there may be
 * much of it; time that this worker takes to store it does not count.
 */
export class StopDeadline {
  /** Fewer bytes than this do not extend the deadline. */
  #leastBytes = 0;
  #received = 0;
  /** Bytes that may still come. */
  #allowance = Number.POSITIVE_INFINITY;
  readonly #onOverdue: () => void;
  readonly #unwanted: AbortSignal;
  readonly #begin: () => void;
  #timer: NodeJS.Timeout | undefined;
  #busy = 0;

  constructor(unwanted: AbortSignal, onOverdue: () => void, ms = WAIT_MS) {
    const check = () => {
      if (this.#busy > 0) this.#timer?.refresh();
      else onOverdue();
    };
    this.#unwanted = unwanted;
    this.#onOverdue = onOverdue;
    this.#begin = () => {
      this.#timer = setTimeout(check, ms);
    };
    if (unwanted.aborted) this.#begin();
    else unwanted.addEventListener('abort', this.#begin, { once: true });
  }

  /** Runs work of this worker's own, with so many bytes of output; its time does not count. */
  async exclude<T>(work: () => T | Promise<T>, bytes = 0): Promise<T> {
    this.#busy++;
    try {
      return await work();
    } finally {
      this.#busy--;
      this.#received += bytes;
      this.#allowance -= bytes;
      if (this.#allowance < 0) this.#onOverdue();
      if (this.#received >= this.#leastBytes) {
        this.#received = 0;
        this.#timer?.refresh();
      }
    }
  }

  /** For a run whose processes the host has ended, as far as it found them; it may have kept so many bytes of output. */
  boundOutput(keptBytes: number): void {
    this.#leastBytes = Math.max(this.#leastBytes, TRICKLE);
    this.#allowance = Math.min(this.#allowance, keptBytes + IN_FLIGHT);
  }

  /** For a run of which something does not end: output no longer extends the deadline. */
  ignoreOutput(): void {
    this.#leastBytes = Number.POSITIVE_INFINITY;
  }

  clear(): void {
    this.#unwanted.removeEventListener('abort', this.#begin);
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
