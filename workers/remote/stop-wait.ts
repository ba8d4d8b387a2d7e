/** An agent that answers stops a run within 6 s, on a busy host within a little more. */
const WAIT_MS = 15_000;

/**
 * How long a host is waited for to say that a cancelled run was stopped: from the cancel on, and anew from each piece of
 * its output, of which there may be much. Time that we keep the host waiting does not count.
 */
export class StopWait {
  /** What comes from now on is no sign that the run will end. */
  isLast = false;
  readonly #cancel: AbortSignal;
  readonly #begin: () => void;
  #timer: NodeJS.Timeout | undefined;
  #busy = 0;

  constructor(cancel: AbortSignal, onSilence: () => void, ms = WAIT_MS) {
    const look = () => {
      if (this.#busy > 0) this.#timer?.refresh();
      else onSilence();
    };
    this.#cancel = cancel;
    this.#begin = () => {
      this.#timer = setTimeout(look, ms);
    };
    if (cancel.aborted) this.#begin();
    else cancel.addEventListener('abort', this.#begin, { once: true });
  }

  /** Does our part with something that came from the run. */
  async take<T>(work: () => T | Promise<T>): Promise<T> {
    this.#busy++;
    try {
      return await work();
    } finally {
      this.#busy--;
      if (!this.isLast) this.#timer?.refresh();
    }
  }

  end(): void {
    this.#cancel.removeEventListener('abort', this.#begin);
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
