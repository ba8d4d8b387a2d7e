import { pauseUnlessAborted } from './pause.ts';

/** Ends a pause early. What rings while nobody waits ends the next one. */
export class WakeUp {
  #isRung = false;
  #wake: () => void = () => {};

  ring(): void {
    this.#isRung = true;
    this.#wake();
  }

  /** Waits for a ring, so long (ms) at most, or until the signal is aborted. */
  async wait(signal: AbortSignal, ms: number): Promise<void> {
    if (!this.#isRung) {
      const woken = new AbortController();
      this.#wake = () => woken.abort();
      signal.addEventListener('abort', this.#wake, { once: true });
      await pauseUnlessAborted(woken.signal, signal.aborted ? 0 : ms);
      signal.removeEventListener('abort', this.#wake);
    }
    this.#isRung = false;
  }
}
