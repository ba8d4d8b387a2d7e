/**
 * How long a host may take to close a channel that was given up. sshd closes one only when its program has ended, which one
 * that waits for a disk that went away does not.
 */
const CLOSE_MS = 10_000;

/** A channel of ssh2, which asks the host to close it by destroy(), whoever calls that. */
interface Channel {
  once(event: 'close', listener: () => void): unknown;
  destroy(): unknown;
}

/** Counts the channels of a connection that its host leaves open though they were given up. */
export class UnclosedChannels {
  #count = 0;
  readonly #onFound: () => void;
  readonly #closeMs: number;

  /** `onFound` is called for each. */
  constructor(onFound: () => void, closeMs = CLOSE_MS) {
    this.#onFound = onFound;
    this.#closeMs = closeMs;
  }

  get count(): number {
    return this.#count;
  }

  watch(channel: Channel): void {
    let timer: NodeJS.Timeout | undefined;
    let isClosed = false;
    let isCounted = false;
    const find = () => {
      isCounted = true;
      this.#count++;
      this.#onFound();
    };
    const destroy = channel.destroy.bind(channel);
    // Streams destroy themselves, too: by a hook of our own some of them would be missed.
    channel.destroy = () => {
      if (!isClosed) timer ??= setTimeout(find, this.#closeMs).unref();
      return destroy();
    };
    channel.once('close', () => {
      isClosed = true;
      clearTimeout(timer);
      if (isCounted) this.#count--;
    });
  }
}
