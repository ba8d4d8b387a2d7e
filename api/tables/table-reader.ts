import { buffer } from 'node:stream/consumers';
import { Worker } from 'node:worker_threads';
import { conflict, unavailable, WindlassError } from '../../shared/errors/errors.ts';
import { packageRoot } from '../../shared/process/package-root.ts';
import { MissingObject, type ObjectStore } from '../../shared/storage/object-store.ts';
import { Semaphore } from '../concurrency/semaphore.ts';
import { UserSemaphores } from '../concurrency/user-semaphores.ts';
import type { FromThread, TableFile, TableTask, TaskResult, ToThread } from './thread-protocol.ts';

/** Compiled: Node 20 cannot run TypeScript. */
const PROGRAM = new URL('dist/api/tables/reader-thread.js', packageRoot);
/** Tasks that the thread has at once; each may take MAX_DECODED_BYTES. */
const MAX_TASKS = 4;
/** Tasks of one user at once, including answers that wait to be sent. */
const MAX_TASKS_PER_USER = 2;
/** A task that takes longer gets no more bytes, which ends it. */
const TASK_TIMEOUT_MS = 60_000;
/** A task that does not end then is stuck on a malformed file: the thread is terminated and started again. */
const TERMINATE_AFTER_MS = 5_000;
/** A task whose thread was terminated because of another task is tried so often in all. */
const MAX_TRIES = 3;
const HEAP_MB = 768;

interface Pending {
  file: TableFile;
  /** Aborted after TASK_TIMEOUT_MS. */
  timeout: AbortController;
  /** The error of the object store, if it failed. */
  error?: unknown;
  resolve(result: TaskResult<Buffer>): void;
  reject(error: unknown): void;
}

/** The user, and the state of their request. */
export interface ReadRequest {
  user: string;
  /** Whether the client has disconnected while the task waited. */
  hasLeft(): boolean;
  /** Waits for memory to hold the answer until it is sent. */
  reserveMemory(bytes: number): Promise<unknown>;
  /** Throws where the user may not read the table any more: the task, or the memory, may have been waited for. */
  confirm(): Promise<void>;
  /** Whether a row still names the object of the file. */
  isNamed(key: string): Promise<boolean>;
}

/** The thread ended during a task. */
class ThreadEnded extends Error {}

/** The store lacks the file's object. */
class FileGone extends Error {}

/** Reads tables in a thread of this process, which starts with the first task and again after it ended. */
export class TableReader {
  readonly #objects: ObjectStore;
  readonly #pending = new Map<number, Pending>();
  readonly #perUser = new UserSemaphores(MAX_TASKS_PER_USER);
  readonly #inAll = new Semaphore(MAX_TASKS);
  #thread: Worker | undefined;
  #ids = 0;

  constructor(objects: ObjectStore) {
    this.#objects = objects;
  }

  /**
   * The task's result. Throws `payload_too_large`, `conflict` when the file was replaced, `not_found` when its bytes are lost,
   * or `unavailable`. An answer that
   * waits for memory takes one of the user's slots but none of the thread's, so that a slow reader delays only their
   * own requests.
   */
  read(file: TableFile, task: TableTask, reading: ReadRequest): Promise<TaskResult<Buffer>> {
    const { user, hasLeft, reserveMemory, confirm, isNamed } = reading;
    return this.#perUser.run(user, async () => {
      if (hasLeft()) throw endedEarly();
      const result = await this.#inAll
        .run(() => this.#runWithRetries(file, task))
        .catch(async (error: unknown) => {
          if (!(error instanceof FileGone)) throw error;
          throw (await isNamed(file.key)) ? bytesLost() : replaced();
        });
      await reserveMemory(result.bytes.length);
      await confirm();
      return result;
    });
  }

  async #runWithRetries(file: TableFile, task: TableTask): Promise<TaskResult<Buffer>> {
    for (let tries = 1; ; tries++) {
      const timeout = new AbortController();
      try {
        return await this.#run(file, task, timeout);
      } catch (error) {
        if (!(error instanceof ThreadEnded)) throw error;
        if (timeout.signal.aborted || tries === MAX_TRIES) throw threadEnded();
      }
    }
  }

  async #run(
    file: TableFile,
    task: TableTask,
    timeout: AbortController,
  ): Promise<TaskResult<Buffer>> {
    const thread = this.#start();
    const id = ++this.#ids;
    const timers = [
      setTimeout(() => timeout.abort(tooSlow()), TASK_TIMEOUT_MS),
      setTimeout(() => void thread.terminate(), TASK_TIMEOUT_MS + TERMINATE_AFTER_MS),
    ];
    try {
      return await new Promise<TaskResult<Buffer>>((resolve, reject) => {
        this.#pending.set(id, { file, timeout, resolve, reject });
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
    // `exit` follows.
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
    if ('bytes' in message) {
      const { buffer: bytes, byteOffset, byteLength } = message.bytes;
      pending.resolve({ bytes: Buffer.from(bytes, byteOffset, byteLength), next: message.next });
    } else if ('tooLarge' in message)
      pending.reject(new WindlassError('payload_too_large', message.tooLarge));
    else pending.reject(pending.error ?? new Error(message.failed));
  }

  async #fetch(
    thread: Worker,
    { fetch, of, start, end }: Extract<FromThread, { fetch: number }>,
  ): Promise<void> {
    const pending = this.#pending.get(of);
    const signal = pending?.timeout.signal;
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
        pending.error ??= signal?.aborted
          ? signal.reason
          : error instanceof MissingObject
            ? new FileGone()
            : error;
    }
    thread.postMessage({ fetch, bytes } satisfies ToThread, bytes ? [bytes] : []);
  }
}

const replaced = () =>
  conflict('the table was replaced or deleted, or its view removed, just now.', 'Ask again.');

const bytesLost = () =>
  new MissingObject({
    detail: 'The bytes are no longer kept.',
    hint: 'The object store has lost them: upload the table again.',
  });

const endedEarly = () => new WindlassError('bad_request', { detail: 'The request ended early.' });

const tooSlow = () =>
  unavailable(
    `the table could not be read within ${TASK_TIMEOUT_MS / 1_000} s.`,
    'Ask for fewer rows or columns at once, or download the whole table from …/data.',
    10,
  );

const threadEnded = () =>
  unavailable(
    'the thread that reads tables ended and is restarting.',
    'Ask for fewer rows or columns at once.',
    1,
  );
