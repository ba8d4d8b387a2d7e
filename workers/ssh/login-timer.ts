/** Limits a host's time for a login, without the time that its user takes. */
export class LoginTimer {
  readonly #ms: number;
  readonly #onLate: () => void;
  #timer: NodeJS.Timeout | undefined;

  constructor(ms: number, onLate: () => void) {
    this.#ms = ms;
    this.#onLate = onLate;
    this.#start();
  }

  /** Begins anew after the user has answered. */
  async whileUserAnswers<T>(answering: Promise<T>): Promise<T> {
    this.stop();
    const answers = await answering;
    this.#start();
    return answers;
  }

  /** Begins anew, with this time. */
  extend(ms: number): void {
    this.stop();
    this.#start(ms);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #start(ms = this.#ms): void {
    this.#timer = setTimeout(this.#onLate, ms);
  }
}

/** The error of a login that took too long, as of ssh2's own time-out. */
export const tooLate = () => Object.assign(new Error('timed out'), { level: 'client-timeout' });
