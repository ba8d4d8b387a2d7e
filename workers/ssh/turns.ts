/** One place in a queue: taken, left for others, and given up in the end. */
interface Turn {
  /** Resolves when it is this one's turn; at once if it already is. */
  take(): Promise<void>;
  /** Lets the next one go on. */
  leave(): void;
  /** Like leave(), but for good, also while take() still waits. */
  end(): void;
}

/** Queues by key. In each queue, one at a time has its turn. */
export class Turns {
  /** By key, resolves when the last turn in the queue is over. */
  readonly #last = new Map<string, Promise<void>>();

  of(key: string): Turn {
    let release: (() => void) | undefined;
    let isOver = false;
    const leave = () => {
      release?.();
      release = undefined;
    };
    const take = async () => {
      if (release) return;
      const before = this.#last.get(key);
      const done = new Promise<void>(resolve => {
        release = resolve;
      });
      const last = Promise.all([before, done]).then(() => {
        if (this.#last.get(key) === last) this.#last.delete(key);
      });
      this.#last.set(key, last);
      if (isOver) leave();
      await before;
    };
    const end = () => {
      isOver = true;
      leave();
    };
    return { take, leave, end };
  }
}
