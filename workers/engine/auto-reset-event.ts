import { sleep } from '../../shared/process/abort.ts';

/** Ends a pause early. set() while nobody waits ends the next pause. */
export class AutoResetEvent {
  #isSet = false;
  #wake: () => void = () => {};

  set(): void {
    this.#isSet = true;
    this.#wake();
  }

  /** Waits for set(), at most so long (ms), or until the signal is aborted. */
  async wait(signal: AbortSignal, ms: number): Promise<void> {
    if (!this.#isSet) {
      const woken = new AbortController();
      this.#wake = () => woken.abort();
      signal.addEventListener('abort', this.#wake, { once: true });
      await sleep(woken.signal, signal.aborted ? 0 : ms);
      signal.removeEventListener('abort', this.#wake);
    }
    this.#isSet = false;
  }
}
