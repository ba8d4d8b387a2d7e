import type { WindlassError } from './error.ts';
import { type Http, isPassing } from './http.ts';

/** After so many losses in a row the size is taken for the reason. */
const ENOUGH = 2;
/** What is lost sooner may have been refused: a small request is then lost, too. */
const CUT_MS = 250;
const SMALL_MS = 10_000;

/**
 * Tells whether something that is lost repeatedly, though nothing else is sent meanwhile, is too large for its link.
 */
export class Losses {
  readonly #http: Http;
  #count = 0;

  constructor(http: Http) {
    this.#http = http;
  }

  get areEnough(): boolean {
    return this.#count >= ENOUGH;
  }

  /** Takes up the loss of what was begun at that `performance.now()`. */
  async add(error: WindlassError, begun: number, signal?: AbortSignal): Promise<void> {
    if (error.code !== 'unreachable') return;
    if (performance.now() - begun > CUT_MS || (await this.#isAnswered(signal))) this.#count++;
  }

  /** Something came through, or is smaller now. */
  reset(): void {
    this.#count = 0;
  }

  async #isAnswered(signal?: AbortSignal): Promise<boolean> {
    const sending = { signal, timeoutMs: SMALL_MS, patience: 0 };
    try {
      await this.#http.request('/api/', { method: 'HEAD' }, sending);
      return true;
    } catch (error) {
      signal?.throwIfAborted();
      return !isPassing(error);
    }
  }
}
