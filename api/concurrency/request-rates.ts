import { CountsPerSecond } from './counts-per-second.ts';

/** Longer ones are not remembered. */
const MAX_CREDENTIAL = 1_024;

/** How often each party asks for something in this second, in this process, and with which credentials it did too often. */
export class RequestRates {
  readonly #perSecond: number;
  readonly #ofParties = new CountsPerSecond();
  readonly #refused = new CountsPerSecond();

  /** @param perSecond 0: no limit */
  constructor(perSecond: number) {
    this.#perSecond = perSecond;
  }

  /** Counts a request. Whether it is one too many. */
  exceed(party: string, credential: string | undefined): boolean {
    const isExcess = this.#ofParties.add(party) > this.#perSecond && this.#perSecond > 0;
    if (isExcess && credential !== undefined && credential.length <= MAX_CREDENTIAL)
      this.#refused.add(credential);
    return isExcess;
  }

  /** Whether a request with this credential was one too many in this second: then the next one is, too. */
  isRefused(credential: string): boolean {
    return this.#refused.has(credential);
  }

  /** Whether isRefused() may be true of any credential. */
  get hasRefused(): boolean {
    return !this.#refused.isEmpty;
  }
}
