/** Credit of an agent at its start, LINK in agent.sh, and the smallest window. */
const MIN_BYTES = 256 << 10;
const MAX_BYTES = 16 << 20;
/** How long the bytes in flight may take: every answer and every other run's output waits behind them. */
const DELAY_MS = 1_000;
const MAX_GROWTH = 4;

/**
 * Flow control over all runs of one channel: the window is what the link delivers in one second, measured from a grant
 * of credit to the arrival of its last byte (decision 24). If the runs print less, the window follows what they print.
 */
export class FlowWindow {
  #size = MIN_BYTES;
  #received = 0;
  #granted = MIN_BYTES;
  /** Grants whose bytes are still arriving: end offset, window size and time. */
  readonly #grants: { upTo: number; size: number; at: number }[] = [];

  /**
   * Counts bytes that arrived at `now` (ms). Returns the credit to grant, if it is time: the total of all bytes allowed
   * so far, and the least that one run sends at a time.
   */
  receive(bytes: number, now: number): { total: number; least: number } | undefined {
    this.#received += bytes;
    while (this.#grants[0] && this.#grants[0].upTo <= this.#received) {
      const grant = this.#grants.shift();
      if (grant) this.#size = adapt(grant, now);
    }
    // A late grant shrinks the window before it has arrived whole.
    const [oldest] = this.#grants;
    if (oldest && now - oldest.at > DELAY_MS) this.#size = Math.min(this.#size, adapt(oldest, now));
    const total = this.#received + this.#size;
    if (total - this.#granted < this.#size / 4) return undefined;
    this.#granted = total;
    this.#grants.push({ upTo: total, size: this.#size, at: now });
    return { total, least: Math.floor(this.#size / 8) };
  }
}

/** The window whose bytes would have arrived within DELAY_MS. */
function adapt({ size, at }: { size: number; at: number }, now: number): number {
  const measured = (size * DELAY_MS) / Math.max(1, now - at);
  return Math.floor(Math.max(MIN_BYTES, Math.min(MAX_BYTES, size * MAX_GROWTH, measured)));
}
