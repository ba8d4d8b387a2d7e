import { unwrap } from './api.ts';
import type { Connection } from './connection.ts';
import { WindlassError } from './error.ts';
import type { FollowOptions } from './follow.ts';
import type { DirectoryListing, ReadOptions, WriteOptions, WrittenFile } from './host-files.ts';
import { ANSWER_MS } from './http.ts';
import type { Bytes } from './lines.ts';
import { type Credentials, LOGIN_MS, type LoginOptions, logIn } from './login.ts';
import type { Options } from './options.ts';
import { Run } from './run.ts';
import type { components } from './schema.ts';
import type { Source } from './upload.ts';
import type { Video, VideoOptions } from './video.ts';

type Schemas = components['schemas'];
export type SessionRecord = Schemas['Session'];
interface StartOptions extends FollowOptions {
  /**
   * 1 to 255 visible characters of your own: for 24 hours the same request under the same key is the same run, from another
   * page or program too.
   */
  idempotencyKey?: string | undefined;
}
export type BatchOptions = Options<Schemas['NewBatchJob']> & StartOptions;
export type RunOptions = Options<Omit<Schemas['NewCommand'], 'sid' | 'command'>> & StartOptions;

/** A user's login on a host. */
export class Session {
  readonly sid: string;
  /** What the host showed at the login, if anything. */
  readonly banner: string | undefined;
  readonly #connection: Connection;

  constructor(connection: Connection, { sid, banner }: { sid: string; banner?: string }) {
    this.#connection = connection;
    this.sid = sid;
    this.banner = banner;
  }

  /**
   * Runs a command, once, whatever happens to connections meanwhile. The request is sent at once; the run reports its
   * fate.
   */
  run(command: string, options: RunOptions = {}): Run {
    const { signal, from, silence, idempotencyKey, ...given } = options;
    const { api } = this.#connection;
    const start = async () => {
      const params = { header: { Prefer: 'respond-async', 'Idempotency-Key': idempotencyKey } };
      const body = { sid: this.sid, command, ...given };
      const sending = { params, body, signal, timeoutMs: ANSWER_MS };
      const asked = api.POST('/api/remotes/launch', sending);
      const answer = await unwrap(asked).catch(async (error: unknown) => {
        // The first answer was lost, and the command has failed since: it has a job, with its output.
        const { response } = await asked.catch(() => ({ response: undefined }));
        const job = /\/jobs\/(\w+)$/.exec(response?.headers.get('Location') ?? '')?.[1];
        if (job === undefined) throw error;
        return { job };
      });
      return 'id' in answer ? answer.id : answer.job;
    };
    return new Run(this.#connection, start, { signal, from, silence });
  }

  /** Submits a job to the batch system of the host: `command` or `script`. Its run is followed while it waits there, too. */
  batch({ signal, from, silence, idempotencyKey, ...body }: BatchOptions): Run {
    const { api } = this.#connection;
    const start = async () => {
      const header = { 'Idempotency-Key': idempotencyKey };
      const params = { path: { sid: this.sid }, header };
      const sending = { params, body, signal, timeoutMs: ANSWER_MS };
      return (await unwrap(api.POST('/api/remotes/{sid}/batch', sending))).id;
    };
    return new Run(this.#connection, start, { signal, from, silence });
  }

  /** Asks for a video of frames on the host. */
  async video(options: VideoOptions): Promise<Video> {
    const { startVideo } = await import('./video.ts');
    return startVideo(this.#connection, this, options);
  }

  /** The entries of a directory on the host, as arrays side by side. A relative path, or `~/…`, is in the home, here and below. */
  async browse(
    path: string,
    options?: { signal?: AbortSignal | undefined },
  ): Promise<DirectoryListing> {
    const { listDirectory } = await import('./host-files.ts');
    return listDirectory(this.#connection, { session: this, path }, options);
  }

  /** The bytes of a file on the host, as they come, over any number of connections. */
  async *readFile(path: string, options?: ReadOptions): AsyncGenerator<Bytes> {
    const { readFile } = await import('./host-files.ts');
    yield* readFile(this.#connection, { session: this, path }, options);
  }

  /** Writes a file on the host, which is there whole then, or as before. */
  async writeFile(
    path: string,
    bytes: Source | Uint8Array | string,
    options?: WriteOptions,
  ): Promise<WrittenFile> {
    const { writeFile } = await import('./host-files.ts');
    return writeFile(this.#connection, { session: this, path, bytes }, options);
  }

  /** Its record: its host, and until when it lives. */
  async info({ signal }: { signal?: AbortSignal | undefined } = {}): Promise<SessionRecord> {
    const params = { path: { sid: this.sid } };
    return unwrap(
      this.#connection.api.GET('/api/remotes/{sid}', { params, signal, timeoutMs: ANSWER_MS }),
    );
  }

  /** Logs in again, where the host asked for a one-time code and the connection was lost: its state is `reconnect`. */
  async login({ answer, signal, ...body }: Credentials & LoginOptions = {}): Promise<void> {
    const params = { path: { sid: this.sid } };
    const { api } = this.#connection;
    await logIn(
      this.#connection,
      () =>
        unwrap(api.POST('/api/remotes/{sid}/login', { params, body, signal, timeoutMs: LOGIN_MS })),
      { answer, signal },
    );
  }

  /** Ends it, and cancels its jobs. False where there is none, as where it has ended already. */
  async close({ signal }: { signal?: AbortSignal | undefined } = {}): Promise<boolean> {
    const params = { path: { sid: this.sid } };
    try {
      await unwrap(
        this.#connection.api.DELETE('/api/remotes/{sid}', { params, signal, timeoutMs: ANSWER_MS }),
      );
      return true;
    } catch (error) {
      if (error instanceof WindlassError && error.code === 'session_not_found') return false;
      throw error;
    }
  }
}
