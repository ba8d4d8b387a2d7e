/** Limits a host's time for a login, without the time that its user takes. */
export class LoginTimer {
  readonly #ms: number;
  readonly #onLate: () => void;
  /** performance.now() to which it may be extended. */
  readonly #extendedTo: number;
  /** performance.now() when it is late. */
  #lateAt = 0;
  #timer: NodeJS.Timeout | undefined;

  /** `longestMs`: for the whole login, from now on, where it is extended. */
  constructor({ ms, longestMs }: { ms: number; longestMs: number }, onLate: () => void) {
    this.#ms = ms;
    this.#onLate = onLate;
    this.#extendedTo = performance.now() + longestMs;
    this.#start();
  }

  /** Begins anew after the user has answered. */
  async whileUserAnswers<T>(answering: Promise<T>): Promise<T> {
    this.stop();
    const answers = await answering;
    this.#start();
    return answers;
  }

  /** Gives the host what is left of the longest time, however often it is called. */
  extend(): void {
    if (this.#extendedTo < this.#lateAt) return;
    this.stop();
    this.#start(this.#extendedTo - performance.now());
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #start(ms = this.#ms): void {
    this.#lateAt = performance.now() + ms;
    this.#timer = setTimeout(this.#onLate, ms);
  }
}

/** The error of a login that took too long, as of ssh2's own time-out. */
export const tooLate = () => Object.assign(new Error('timed out'), { level: 'client-timeout' });
