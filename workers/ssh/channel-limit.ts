import { sleep } from '../../shared/process/abort.ts';
import { channelRefused, channelRefusedBesideAgent, channelsHang } from './channel-refusals.ts';
import { connectionFailed, explainFailure, isRefusal } from './ssh-errors.ts';

/** Channels of one connection; sshd's MaxSessions defaults to 10. A refusal lowers the limit for a while. */
const MAX_CHANNELS = 9;
const LOWERED_MS = 10_000;
const REFUSED_PAUSE_MS = 100;
/** A server may refuse new channels for so long although none is open, because it needs a moment to close one. */
const GRACE_MS = 3_000;

interface LimitSettings {
  /** How many channels the host leaves open though they were given up. */
  countUnclosed(): number;
  /** How long a refusal lowers the limit. Default 10,000. */
  loweredMs?: number;
}

/** Keeps the channels of one connection below what its server takes. */
export class ChannelLimit {
  readonly #countUnclosed: () => number;
  readonly #loweredMs: number;
  #limit = MAX_CHANNELS;
  #openChannels = 0;
  /** Channels that stay open for as long as the connection. */
  #lasting = 0;
  /** What wakes those who wait for a channel. */
  readonly #waiting = new Set<() => void>();
  #isClosed = false;

  constructor({ countUnclosed, loweredMs = LOWERED_MS }: LimitSettings) {
    this.#countUnclosed = countUnclosed;
    this.#loweredMs = loweredMs;
  }

  /** Whether the connection is closed. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Call when the connection has closed. */
  close(): void {
    this.#isClosed = true;
    this.wakeAll();
  }

  /** Call when the agent's control channel is open. */
  keepAgentChannel(): void {
    this.#lasting = 1;
    this.wakeAll();
  }

  /** Opens a channel when one is free, and again after each refusal. */
  async open<T>(signal: AbortSignal | undefined, open: () => Promise<T>): Promise<T> {
    const grace = new RefusalGrace();
    for (;;) {
      await this.#reserve(signal);
      try {
        return await open();
      } catch (error) {
        this.release();
        if (!isRefusal(error) || this.#isClosed) throw explainFailure(error, this.#isClosed);
        await this.#waitAfterRefusal(error, grace, signal);
      }
    }
  }

  async #reserve(signal?: AbortSignal): Promise<void> {
    while (!this.#hasFree() && !this.#isClosed && !signal?.aborted) {
      const count = this.#countUnclosed();
      if (count >= this.#openChannels - this.#lasting) throw channelsHang(count);
      await new Promise<void>(resolve => {
        const wake = () => {
          signal?.removeEventListener('abort', wake);
          this.#waiting.delete(wake);
          resolve();
        };
        this.#waiting.add(wake);
        signal?.addEventListener('abort', wake, { once: true });
      });
    }
    // Whoever was woken and leaves wakes the next one.
    if (signal?.aborted) this.#wakeOne();
    signal?.throwIfAborted();
    if (this.#isClosed) throw connectionFailed();
    this.#openChannels++;
  }

  /**
   * One channel beside the agent's may always be requested: the agent's never closes, so nothing would end the wait.
   */
  #hasFree(): boolean {
    return this.#openChannels < Math.max(this.#limit, this.#lasting + 1);
  }

  release(): void {
    this.#openChannels--;
    this.#wakeOne();
  }

  #wakeOne(): void {
    const [first] = this.#waiting;
    first?.();
  }

  wakeAll(): void {
    for (const wake of [...this.#waiting]) wake();
  }

  /**
   * Lowers the limit to the open channels for a while. With none open the server is asked again until the grace is
   * over.
   */
  async #waitAfterRefusal(
    refusal: unknown,
    grace: RefusalGrace,
    signal?: AbortSignal,
  ): Promise<void> {
    if (this.#openChannels <= this.#lasting) {
      if (grace.isOver())
        throw this.#lasting > 0 ? channelRefusedBesideAgent(refusal) : channelRefused(refusal);
      return sleep(signal, REFUSED_PAUSE_MS);
    }
    grace.reset();
    this.#limit = this.#openChannels;
    // Other servers may count the channels of all connections, so the limit may rise when those close.
    setTimeout(() => {
      this.#limit = MAX_CHANNELS;
      this.wakeAll();
    }, this.#loweredMs).unref();
  }
}

/** Runs from the first refusal of a server on which no channel is open. */
class RefusalGrace {
  #until: number | undefined;

  reset(): void {
    this.#until = undefined;
  }

  isOver(): boolean {
    this.#until ??= performance.now() + GRACE_MS;
    return performance.now() > this.#until;
  }
}
