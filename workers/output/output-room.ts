import type { WorkerContext } from '../context.ts';

/** Looked at again after so many bytes, and after so many milliseconds. */
const CHECK_BYTES = 4 << 20;
const CHECK_MS = 1_000;

/** Whether there is room for more of a job's output: LIMIT_FREE_BYTES. */
export class OutputRoom {
  readonly #worker: Pick<WorkerContext, 'freeSpace'>;
  #unchecked = Number.POSITIVE_INFINITY;
  #checkedAt = 0;

  constructor(worker: Pick<WorkerContext, 'freeSpace'>) {
    this.#worker = worker;
  }

  /** Rejects with `insufficient_storage` where nothing more may be stored. A promise only where it has to look. */
  admit(bytes: number): Promise<void> | undefined {
    this.#unchecked += bytes;
    const now = performance.now();
    if (this.#unchecked < CHECK_BYTES && now - this.#checkedAt < CHECK_MS) return undefined;
    this.#unchecked = 0;
    this.#checkedAt = now;
    return this.#worker.freeSpace.assertFree();
  }
}
