/** Runs that are requested without a pause between them, from which on there is demand. */
const RUNS = 4;
const PAUSE_MS = 1_000;
/** Attempts that the host prepares ahead. An attempt takes longer than a short command, so one is too few when busy. */
const AHEAD = { usual: 1, busy: 3 };

/** Tells the host how many attempts to keep ready (decision 45). */
export class Demand {
  readonly #tell: (ahead: number) => void;
  #requested = 0;
  #pause: NodeJS.Timeout | undefined;

  constructor(tell: (ahead: number) => void) {
    this.#tell = tell;
  }

  /** A run is requested. */
  add(): void {
    this.#pause = this.#pause?.refresh() ?? setTimeout(() => this.#calm(), PAUSE_MS).unref();
    if (++this.#requested === RUNS) this.#tell(AHEAD.busy);
  }

  close(): void {
    clearTimeout(this.#pause);
  }

  #calm(): void {
    this.#pause = undefined;
    if (this.#requested >= RUNS) this.#tell(AHEAD.usual);
    this.#requested = 0;
  }
}
