/** Limits the time that a host may take for a login. The user's own time does not count. */
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

  stop(): void {
    clearTimeout(this.#timer);
  }

  #start(): void {
    this.#timer = setTimeout(this.#onLate, this.#ms);
  }
}

/** The error of a login that took too long, as ssh2 says it of its own time-out. */
export const tooLate = () => Object.assign(new Error('timed out'), { level: 'client-timeout' });
