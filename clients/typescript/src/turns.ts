/** So many in a row must get through before several go at once again. */
const ENOUGH = 8;

/**
 * Several senders share a link. While it holds they send at once; after a loss they take turns: over a link that breaks
 * before all of them are through none would ever arrive.
 */
export class Turns {
  #alone = 0;
  #last: Promise<unknown> = Promise.resolve();

  /** Whether nothing else is sent meanwhile. */
  get isAlone(): boolean {
    return this.#alone > 0;
  }

  /** Sends at once, or when the others have had their turns. */
  async take<T>(send: () => Promise<T>): Promise<T> {
    if (this.#alone === 0) return this.#tell(send());
    const turn = this.#last.then(send);
    this.#last = turn.catch(() => {});
    return this.#tell(turn);
  }

  async #tell<T>(sending: Promise<T>): Promise<T> {
    try {
      const sent = await sending;
      this.#alone = Math.max(0, this.#alone - 1);
      return sent;
    } catch (error) {
      this.#alone = ENOUGH;
      throw error;
    }
  }
}
