import { unwrap } from './api.ts';
import type { Connection } from './connection.ts';
import { WindlassError } from './error.ts';
import type { FollowOptions } from './follow.ts';
import { type Credentials, type LoginOptions, logIn } from './login.ts';
import { Run } from './run.ts';
import type { components } from './schema.ts';
import type { Video, VideoOptions } from './video.ts';

type Schemas = components['schemas'];
export type SessionRecord = Schemas['Session'];
export type BatchOptions = Schemas['NewBatchJob'] & FollowOptions;
export type RunOptions = Omit<Schemas['NewCommand'], 'sid' | 'command'> & FollowOptions;

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
   * Runs a command, once, whatever becomes of connections meanwhile. It is asked for at once; what comes of that is told by
   * the run.
   */
  run(command: string, { signal, from, silence, ...options }: RunOptions = {}): Run {
    const { api } = this.#connection;
    const start = async () => {
      const body = { sid: this.sid, command, ...options };
      const headers = { Prefer: 'respond-async' };
      const answer = await unwrap(api.POST('/api/remotes/launch', { body, headers, signal }));
      return 'id' in answer ? answer.id : answer.job;
    };
    return new Run(this.#connection, start, { signal, from, silence });
  }

  /** Submits a job to the batch system of the host: `command` or `script`. Its run is followed while it waits there, too. */
  batch({ signal, from, silence, ...body }: BatchOptions): Run {
    const params = { path: { sid: this.sid } };
    const { api } = this.#connection;
    const start = async () =>
      (await unwrap(api.POST('/api/remotes/{sid}/batch', { params, body, signal }))).id;
    return new Run(this.#connection, start, { signal, from, silence });
  }

  /** Asks for a video of frames on the host. */
  async video(options: VideoOptions): Promise<Video> {
    const { startVideo } = await import('./video.ts');
    return startVideo(this.#connection, this.sid, options);
  }

  /** Its record: its host, and until when it lives. */
  async info({ signal }: { signal?: AbortSignal } = {}): Promise<SessionRecord> {
    const params = { path: { sid: this.sid } };
    return unwrap(this.#connection.api.GET('/api/remotes/{sid}', { params, signal }));
  }

  /** Logs in again, where the host asked for a one-time code and the connection was lost: its state is `reconnect`. */
  async login({ answer, signal, ...body }: Credentials & LoginOptions = {}): Promise<void> {
    const params = { path: { sid: this.sid } };
    const { api } = this.#connection;
    await logIn(
      this.#connection,
      () => unwrap(api.POST('/api/remotes/{sid}/login', { params, body, signal })),
      { answer, signal },
    );
  }

  /** Ends it, and cancels its jobs. One that is gone already is no error. */
  async close({ signal }: { signal?: AbortSignal } = {}): Promise<void> {
    const params = { path: { sid: this.sid } };
    try {
      await unwrap(this.#connection.api.DELETE('/api/remotes/{sid}', { params, signal }));
    } catch (error) {
      if (!(error instanceof WindlassError && error.code === 'session_not_found')) throw error;
    }
  }
}
