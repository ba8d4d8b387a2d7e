import { buffer } from 'node:stream/consumers';
import { Worker } from 'node:worker_threads';
import { WindlassError } from '../../shared/errors.ts';
import { packageRoot } from '../../shared/package-root.ts';
import type { ObjectStore } from '../../shared/storage/object-store.ts';
import { Semaphore } from '../concurrency/semaphore.ts';
import { UserSemaphores } from '../concurrency/user-semaphores.ts';
import type { FromThread, TableFile, TableTask, ToThread } from './thread-protocol.ts';

/** Also when the caller runs from the sources: Node 20 cannot run TypeScript, so the thread is always the compiled one. */
const PROGRAM = new URL('dist/api/tables/reader-thread.js', packageRoot);
/** Tasks that the thread has at once; each may hold MAX_DECODED_BYTES. The rest wait their turn. */
const AT_ONCE = 4;
/** Of one user, answers that wait to be sent among them. */
const AT_ONCE_EACH = 2;
/** What takes longer gets no more bytes, which ends it. */
const TASK_MS = 60_000;
/** What then still goes on has met a broken file: the thread is ended, and started anew. */
const END_MS = 5_000;
/** A task whose thread is ended for another's sake is begun anew, so often in all. */
const TRIES = 3;
const HEAP_MB = 768;

interface Pending {
  file: TableFile;
  /** Aborted when its time is over. */
  over: AbortController;
  /** What went wrong with the object store meanwhile. */
  error?: unknown;
  resolve(json: Buffer): void;
  reject(error: unknown): void;
}

/** Who reads, and what has to be waited for before the answer is theirs. */
export interface ReadRequest {
  user: string;
  /** Asked when its turn has come: of those who have left nothing is read. */
  hasLeft(): boolean;
  /** Waits until so many bytes may be held until they are sent. */
  reserveMemory(bytes: number): Promise<void>;
}

/** The thread ended under a task. */
class ThreadEnded extends Error {}

/** Reads tables through a thread of this process, which is started with the first and again after it died. */
export class TableReader {
  readonly #objects: ObjectStore;
  readonly #pending = new Map<number, Pending>();
  readonly #users = new UserSemaphores(AT_ONCE_EACH);
  readonly #turns = new Semaphore(AT_ONCE);
  #thread: Worker | undefined;
  #ids = 0;

  constructor(objects: ObjectStore) {
    this.#objects = objects;
  }

  /**
   * The text of a JSON value. Throws WindlassError `payload_too_large`, `conflict` where the file is gone, or `unavailable`.
   * Waiting for room takes the user's turn and not one of all, so that who reads answers slowly holds up nobody else, and
   * has only so many answers made that wait.
   */
  read(file: TableFile, task: TableTask, reading: ReadRequest): Promise<Buffer> {
    const { user, hasLeft, reserveMemory } = reading;
    return this.#users.take(user, async () => {
      if (hasLeft()) throw endedEarly();
      const json = await this.#turns.take(() => this.#tryOften(file, task));
      await reserveMemory(json.length);
      return json;
    });
  }

  async #tryOften(file: TableFile, task: TableTask): Promise<Buffer> {
    for (let tries = 1; ; tries++) {
      const over = new AbortController();
      try {
        return await this.#carryOut(file, task, over);
      } catch (error) {
        if (!(error instanceof ThreadEnded)) throw error;
        if (over.signal.aborted || tries === TRIES) throw threadEnded();
      }
    }
  }

  async #carryOut(file: TableFile, task: TableTask, over: AbortController): Promise<Buffer> {
    const thread = this.#start();
    const id = ++this.#ids;
    const timers = [
      setTimeout(() => over.abort(tooSlow()), TASK_MS),
      setTimeout(() => void thread.terminate(), TASK_MS + END_MS),
    ];
    try {
      return await new Promise<Buffer>((resolve, reject) => {
        this.#pending.set(id, { file, over, resolve, reject });
        thread.postMessage({ id, file, task } satisfies ToThread);
      });
    } finally {
      for (const timer of timers) clearTimeout(timer);
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
      for (const pending of this.#pending.values()) pending.reject(new ThreadEnded());
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
    const signal = pending?.over.signal;
    let bytes: ArrayBuffer | undefined;
    try {
      if (pending && end > start) {
        signal?.throwIfAborted();
        const range = { start, end: end - 1 };
        const whole = await buffer(await this.#objects.get(pending.file.key, { range, signal }));
        bytes = new ArrayBuffer(whole.length);
        whole.copy(new Uint8Array(bytes));
      }
    } catch (error) {
      if (pending)
        pending.error ??= signal?.aborted ? signal.reason : isGone(error) ? fileGone() : error;
    }
    thread.postMessage({ fetch, bytes } satisfies ToThread, bytes ? [bytes] : []);
  }
}

const isGone = (error: unknown) => error instanceof WindlassError && error.code === 'not_found';

function fileGone(): WindlassError {
  return new WindlassError('conflict', {
    detail: 'Conflict: the table was replaced or deleted, or its view let go, just now.',
    hint: 'Ask again.',
  });
}

const endedEarly = () => new WindlassError('bad_request', { detail: 'The request ended early.' });

function tooSlow(): WindlassError {
  return new WindlassError('unavailable', {
    detail: `Service unavailable: the table could not be read within ${TASK_MS / 1_000} s.`,
    hint: 'Ask for fewer rows or columns at once, or take the whole table from …/data.',
    headers: { 'Retry-After': '10' },
  });
}

function threadEnded(): WindlassError {
  return new WindlassError('unavailable', {
    detail: 'Service unavailable: the reader of tables was ended, and is started again.',
    hint: 'Ask for fewer rows or columns at once.',
    headers: { 'Retry-After': '1' },
  });
}
