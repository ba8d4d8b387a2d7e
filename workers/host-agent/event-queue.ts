/** One reader's queue: values go in as they come, are taken in order, and end with `finish` or `fail`. */
export class EventQueue<T> implements AsyncIterableIterator<T> {
  readonly #values: { value: T; bytes: number }[] = [];
  #bytes = 0;
  readonly #onLeave: () => void;
  #ended = false;
  #error: unknown;
  #wake: (() => void) | undefined;

  /** onLeave is called when the reader leaves before the end. */
  constructor(onLeave: () => void) {
    this.#onLeave = onLeave;
  }

  /** What its unread values hold, as push() was told. */
  get bytes(): number {
    return this.#bytes;
  }

  push(value: T, bytes = 0): void {
    if (this.#ended) return;
    this.#values.push({ value, bytes });
    this.#bytes += bytes;
    this.#notify();
  }

  finish(): void {
    this.#ended = true;
    this.#notify();
  }

  /** What was queued before is still read; then the reader's next step throws the error. */
  fail(error: unknown): void {
    if (this.#ended) return;
    this.#error = error;
    this.finish();
  }

  async next(): Promise<IteratorResult<T>> {
    while (this.#values.length === 0 && !this.#ended) {
      await new Promise<void>(resolve => {
        this.#wake = resolve;
      });
    }
    const first = this.#values.shift();
    if (first) {
      this.#bytes -= first.bytes;
      return { value: first.value, done: false };
    }
    if (this.#error !== undefined) {
      const error = this.#error;
      this.#error = undefined;
      throw error;
    }
    return { value: undefined, done: true };
  }

  async return(): Promise<IteratorResult<T>> {
    if (!this.#ended) {
      this.#ended = true;
      this.#onLeave();
    }
    this.#values.length = 0;
    this.#bytes = 0;
    this.#error = undefined;
    this.#notify();
    return { value: undefined, done: true };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #notify(): void {
    this.#wake?.();
    this.#wake = undefined;
  }
}
