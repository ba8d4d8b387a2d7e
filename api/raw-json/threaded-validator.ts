import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { unavailable } from '../../shared/errors/errors.ts';
import { packageRoot } from '../../shared/process/package-root.ts';
import { type BodyShape, type RawJsonResult, validateRawJson } from './validate-raw-json.ts';

/** Compiled: Node 20 cannot run TypeScript. */
const PROGRAM = fileURLToPath(new URL('dist/api/raw-json/validator-thread.js', packageRoot));
/** Largest body that is validated in this thread, in at most about 6 ms; 16 MiB take up to 0.8 s. */
const INLINE_BYTES = 128 << 10;

interface Task {
  resolve(exact: RawJsonResult): void;
  reject(error: Error): void;
}

/** validateRawJson() for bodies of any size: large ones in one thread, so that they do not block the event loop. */
export class ThreadedValidator {
  readonly #tasks = new Map<number, Task>();
  #thread: Worker | undefined;
  #count = 0;

  /** May transfer the bytes to the thread: the caller must not use them afterwards. */
  async read(bytes: Buffer, shape: BodyShape, maxDepth: number): Promise<RawJsonResult> {
    if (bytes.length <= INLINE_BYTES) return validateRawJson(bytes, shape, maxDepth);
    const id = ++this.#count;
    const thread = this.#start();
    return new Promise((resolve, reject) => {
      this.#tasks.set(id, { resolve, reject });
      // Only a buffer of its own memory can be transferred; others are copied.
      const isAlone = bytes.length === bytes.buffer.byteLength;
      thread.postMessage(
        { id, bytes, shape, maxDepth },
        isAlone && bytes.buffer instanceof ArrayBuffer ? [bytes.buffer] : [],
      );
    });
  }

  #start(): Worker {
    if (this.#thread) return this.#thread;
    const thread = new Worker(PROGRAM);
    thread.unref();
    thread.on('message', ({ id, exact }: { id: number; exact: RawJsonResult }) => {
      this.#tasks.get(id)?.resolve(exact);
      this.#tasks.delete(id);
    });
    // A thread that runs out of memory ends alone; the next body starts another.
    const lose = (cause?: unknown) => {
      if (this.#thread !== thread) return;
      this.#thread = undefined;
      const error = unavailable('the body could not be read.', 'Try again.', 2, cause);
      for (const task of this.#tasks.values()) task.reject(error);
      this.#tasks.clear();
    };
    thread.on('error', lose);
    thread.on('exit', () => lose());
    this.#thread = thread;
    return thread;
  }
}
