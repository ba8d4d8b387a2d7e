/**
 * How long a host may take to close an abandoned channel. sshd closes it when its program ends, which may hang on a
 * disk.
 */
const CLOSE_MS = 10_000;

/** A channel of ssh2. destroy(), whoever calls it, asks the host to close it. */
interface Channel {
  once(event: 'close', listener: () => void): unknown;
  destroy(): unknown;
}

/** Counts the abandoned channels that the host keeps open. */
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
    // Streams also destroy themselves, so a hook of our own would miss some.
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
