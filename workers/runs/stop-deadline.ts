/** An agent that answers stops a run within 6 s, on a busy host within a little more. */
const WAIT_MS = 15_000;
/** So much of a stopped run's output may be on its way, besides what its host keeps: what still prints then is out of reach. */
const ON_ITS_WAY = 16 << 20;
/** As is what prints less than this while the host is waited for: all that was kept has come by then. */
const TRICKLE = 64 << 10;

/**
 * How long a host is waited for to say that a run was stopped that was cancelled or reached a limit: from then on, and anew
 * from each piece of its output, of which there may be much. Time that we keep the host waiting does not count.
 */
export class StopDeadline {
  /** So many bytes must come for them to be a sign that the run will end. */
  #least = 0;
  #came = 0;
  /** Bytes that may come yet. */
  #left = Number.POSITIVE_INFINITY;
  readonly #giveUp: () => void;
  readonly #unwanted: AbortSignal;
  readonly #begin: () => void;
  #timer: NodeJS.Timeout | undefined;
  #busy = 0;

  constructor(unwanted: AbortSignal, giveUp: () => void, ms = WAIT_MS) {
    const look = () => {
      if (this.#busy > 0) this.#timer?.refresh();
      else giveUp();
    };
    this.#unwanted = unwanted;
    this.#giveUp = giveUp;
    this.#begin = () => {
      this.#timer = setTimeout(look, ms);
    };
    if (unwanted.aborted) this.#begin();
    else unwanted.addEventListener('abort', this.#begin, { once: true });
  }

  /** Does our part with so many bytes that came from the run. */
  async take<T>(work: () => T | Promise<T>, bytes = 0): Promise<T> {
    this.#busy++;
    try {
      return await work();
    } finally {
      this.#busy--;
      this.#came += bytes;
      this.#left -= bytes;
      if (this.#left < 0) this.#giveUp();
      if (this.#came >= this.#least) {
        this.#came = 0;
        this.#timer?.refresh();
      }
    }
  }

  /** To be told that the host has ended all of the run that it could find; it may have kept so many bytes of its output. */
  stopped(keptBytes: number): void {
    this.#least = Math.max(this.#least, TRICKLE);
    this.#left = Math.min(this.#left, keptBytes + ON_ITS_WAY);
  }

  /** To be told that something of the run would not end: whatever comes from now on is no sign. */
  wouldNotEnd(): void {
    this.#least = Number.POSITIVE_INFINITY;
  }

  end(): void {
    this.#unwanted.removeEventListener('abort', this.#begin);
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
