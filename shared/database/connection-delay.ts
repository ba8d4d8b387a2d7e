/** Further connections are used once work has waited without a pause for so long … */
const UNUSUAL_MS = 250;
/** … by what has waited so long itself … */
const SHORT_MS = 5;
/** … until nothing has for so long. */
const CALM_MS = 1_000;

type Start = () => void;

/**
 * Lets work wait for the usual connections of a pool, so that only load opens further ones, not what an idle process
 * does at once every few seconds. Nothing waits for ever: work that never ends only delays other work.
 */
export class ConnectionDelay {
  readonly #isFree: () => boolean;
  readonly #waiting = new Set<Start>();
  /** performance.now() when work began to wait, and until when it waits SHORT_MS only. */
  #waitingSince = 0;
  #busyUntil = 0;

  /** `isFree`: whether a usual connection is free. It changes at the latest when work is begun. */
  constructor(isFree: () => boolean) {
    this.#isFree = isFree;
  }

  run<T>(work: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const start = () => void work().then(resolve, reject);
      if (this.#isFree()) start();
      else this.#wait(start);
    });
  }

  /** To be called when work has ended. */
  next(): void {
    const [start] = this.#waiting;
    if (start && this.#isFree()) start();
  }

  #wait(begin: Start): void {
    const now = performance.now();
    if (this.#waiting.size === 0) this.#waitingSince = now;
    const unusual = this.#waitingSince + UNUSUAL_MS - now;
    const ms = now < this.#busyUntil ? SHORT_MS : Math.max(unusual, SHORT_MS);
    const start = () => {
      clearTimeout(timer);
      this.#waiting.delete(start);
      begin();
    };
    const timer = setTimeout(() => {
      this.#busyUntil = performance.now() + CALM_MS;
      start();
    }, ms);
    this.#waiting.add(start);
  }
}
