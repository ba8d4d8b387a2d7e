/**
 * A queue for one reader, which iterates over it until `finish` or `fail`. Hand-made, because a Readable
 * discards its queued values when it fails.
 */
export class EventQueue<T> implements AsyncIterableIterator<T> {
  readonly #values: { value: T; bytes: number }[] = [];
  #bytes = 0;
  readonly #onReturn: () => void;
  #ended = false;
  #error: unknown;
  #wake: (() => void) | undefined;

  /** onReturn is called when the reader stops before the end. */
  constructor(onReturn: () => void) {
    this.#onReturn = onReturn;
  }

  /** The sum of its unread values' bytes. */
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

  /** The reader gets the values that are queued already, then the error. */
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
      this.#onReturn();
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
