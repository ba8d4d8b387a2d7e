/** An agent that answers stops a run within 6 s, on a busy host within a little more. */
const WAIT_MS = 15_000;
/**
 * The output that may be in flight of a stopped run, besides what its host keeps. A run that prints more is not
 * stopped.
 */
const IN_FLIGHT = 16 << 20;
/** A run that keeps printing less than this in WAIT_MS is not stopped either: what the host kept comes faster. */
const TRICKLE = 64 << 10;

/**
 * The time that the host has for stopping a run, from the abort of `unwanted`. Output extends it, because much may be
 * in flight; the time that this worker takes to store output does not count.
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

  /** Runs work of this worker, with so many bytes of output; its time does not count. */
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

  /** For a run whose known processes the host has ended; it may have kept so many bytes of output. */
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
