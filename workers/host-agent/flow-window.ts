/** What an agent may send before it was allowed more: LINK in agent.sh. It also is the least that is ever on its way. */
const LEAST = 256 << 10;
const MOST = 16 << 20;
/** So long may take what is on its way: every answer of the agent and every other run's line comes behind it. */
const DELAY_MS = 1_000;
const FASTEST_GROWTH = 4;

/**
 * How much output of all runs an agent may have on its way over one channel. A link that is slower than what is printed
 * fills its buffers, which are of many MiB between a pipe on the host and a socket here; so what is allowed is bounded by
 * what the link passes in a second, as its own measure tells: how long a byte takes to come once it was allowed. Where a
 * run prints less than that, the measure is of the run, and allows what it prints all the same.
 */
export class FlowWindow {
  #size = LEAST;
  #received = 0;
  #allowed = LEAST;
  /** What was allowed and has not come whole: up to which byte, with which window, since when. */
  readonly #grants: { upTo: number; size: number; at: number }[] = [];

  /** Counts bytes that came at `now`, in milliseconds; returns what is to be allowed from now on, where it is more. */
  take(bytes: number, now: number): { total: number; piece: number } | undefined {
    this.#received += bytes;
    while (this.#grants[0] && this.#grants[0].upTo <= this.#received) {
      const grant = this.#grants.shift();
      if (grant) this.#size = adapt(grant, now);
    }
    // What takes too long already need not have come for that to show.
    const [oldest] = this.#grants;
    if (oldest && now - oldest.at > DELAY_MS) this.#size = Math.min(this.#size, adapt(oldest, now));
    const total = this.#received + this.#size;
    if (total - this.#allowed < this.#size / 4) return undefined;
    this.#allowed = total;
    this.#grants.push({ upTo: total, size: this.#size, at: now });
    return { total, piece: Math.floor(this.#size / 8) };
  }
}

/** The window of which all would have come in time. */
function adapt({ size, at }: { size: number; at: number }, now: number): number {
  const right = (size * DELAY_MS) / Math.max(1, now - at);
  return Math.floor(Math.max(LEAST, Math.min(MOST, size * FASTEST_GROWTH, right)));
}
