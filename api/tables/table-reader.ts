import { buffer } from 'node:stream/consumers';
import { Worker } from 'node:worker_threads';
import { WindlassError } from '../../shared/errors.ts';
import { packageRoot } from '../../shared/package-root.ts';
import type { ObjectStore } from '../../shared/storage/object-store.ts';
import type { FromThread, TableFile, TableTask, ToThread } from './thread-protocol.ts';

/** Also when the caller runs from the sources: Node 20 cannot run TypeScript, so the thread is always the compiled one. */
const PROGRAM = new URL('dist/api/tables/reader-thread.js', packageRoot);
/** Tasks that the thread has at once; each may hold MAX_DECODED. The rest wait their turn. */
const AT_ONCE = 4;
/** No page takes so long; what does has met a broken file, and the thread is started anew. */
const TASK_MS = 60_000;
const HEAP_MB = 768;

interface Pending {
  file: TableFile;
  /** What went wrong with the object store meanwhile. */
  error?: unknown;
  resolve(json: Buffer): void;
  reject(error: unknown): void;
}

/** Reads tables through a thread of this process, which is started with the first and again after it died. */
export class TableReader {
  readonly #objects: ObjectStore;
  readonly #pending = new Map<number, Pending>();
  readonly #queue: (() => void)[] = [];
  #thread: Worker | undefined;
  #running = 0;
  #ids = 0;

  constructor(objects: ObjectStore) {
    this.#objects = objects;
  }

  /** The text of a JSON value. Throws WindlassError `payload_too_large`, `not_found` or `unavailable`. */
  async read(file: TableFile, task: TableTask): Promise<Buffer> {
    if (this.#running >= AT_ONCE) await new Promise<void>(resolve => this.#queue.push(resolve));
    else this.#running++;
    try {
      return await this.#carryOut(file, task);
    } finally {
      const next = this.#queue.shift();
      if (next) next();
      else this.#running--;
    }
  }

  async #carryOut(file: TableFile, task: TableTask): Promise<Buffer> {
    const thread = this.#start();
    const id = ++this.#ids;
    const timer = setTimeout(() => void thread.terminate(), TASK_MS);
    try {
      return await new Promise<Buffer>((resolve, reject) => {
        this.#pending.set(id, { file, resolve, reject });
        thread.postMessage({ id, file, task } satisfies ToThread);
      });
    } finally {
      clearTimeout(timer);
      this.#pending.delete(id);
    }
  }

  #start(): Worker {
    if (this.#thread) return this.#thread;
    const thread = new Worker(PROGRAM, { resourceLimits: { maxOldGenerationSizeMb: HEAP_MB } });
    thread.unref();
    thread.on('message', (message: FromThread) => this.#take(thread, message));
    // Every end comes here too.
    thread.on('error', () => {});
    thread.on('exit', () => {
      if (this.#thread === thread) this.#thread = undefined;
      for (const pending of this.#pending.values()) pending.reject(threadEnded());
    });
    this.#thread = thread;
    return thread;
  }

  #take(thread: Worker, message: FromThread): void {
    if ('fetch' in message) return void this.#fetch(thread, message);
    const pending = this.#pending.get(message.id);
    if (!pending) return;
    if ('json' in message) {
      const { buffer: bytes, byteOffset, byteLength } = message.json;
      pending.resolve(Buffer.from(bytes, byteOffset, byteLength));
    } else if ('tooLarge' in message)
      pending.reject(new WindlassError('payload_too_large', message.tooLarge));
    else pending.reject(pending.error ?? new Error(message.failed));
  }

  async #fetch(
    thread: Worker,
    { fetch, of, start, end }: Extract<FromThread, { fetch: number }>,
  ): Promise<void> {
    const pending = this.#pending.get(of);
    let bytes: ArrayBuffer | undefined;
    try {
      if (pending && end > start) {
        const range = { start, end: end - 1 };
        const whole = await buffer(await this.#objects.get(pending.file.key, { range }));
        bytes = new ArrayBuffer(whole.length);
        whole.copy(new Uint8Array(bytes));
      }
    } catch (error) {
      if (pending) pending.error ??= error;
    }
    thread.postMessage({ fetch, bytes } satisfies ToThread, bytes ? [bytes] : []);
  }
}

function threadEnded(): WindlassError {
  return new WindlassError('unavailable', {
    detail: 'Service unavailable: the reader of tables was ended, and is started again.',
    hint: 'Ask for fewer rows or columns at once.',
    headers: { 'Retry-After': '1' },
  });
}
