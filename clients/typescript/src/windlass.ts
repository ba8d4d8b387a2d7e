import { type Api, createApi, unwrap } from './api.ts';
import type { Connection } from './connection.ts';
import { WindlassError } from './error.ts';
import type { FollowOptions } from './follow.ts';
import { type ConnectionOptions, Http } from './http.ts';
import { cancelJob, type Job, type WaitOptions, waitForEnd } from './jobs.ts';
import type { JobsOptions, ListedJob } from './list-jobs.ts';
import { LOGIN_MS, type LoginOptions, logIn } from './login.ts';
import type { Options } from './options.ts';
import type { Row, RowsOptions, RowsPage } from './rows.ts';
import { Run } from './run.ts';
import type { components } from './schema.ts';
import { Session } from './session.ts';
import type { Files, UploadOptions } from './upload.ts';
import type { Video } from './video.ts';

type Schemas = components['schemas'];
export type OpenOptions = Options<Omit<Schemas['NewSession'], 'hostname'>> & LoginOptions;

/** How often a login is begun anew that the service cancelled because the connection to it was lost. */
const MAX_LOGINS = 3;

/** A client of one service. */
export class Windlass {
  /** All operations of the service with their types, by openapi-fetch. unwrap() makes errors of its answers. */
  readonly api: Api;
  readonly #connection: Connection;

  constructor(options: ConnectionOptions) {
    const http = new Http(options);
    this.api = createApi(http);
    this.#connection = { http, api: this.api };
  }

  /** Logs in to a host. Throws WindlassError where it refuses, or asks for more than is answered. */
  async open(hostname: string, { answer, signal, ...options }: OpenOptions): Promise<Session> {
    let begun: string | undefined;
    const begin = async () => {
      const asked = await this.#beginLogin({ hostname, ...options }, signal);
      begun = asked.sid;
      return asked;
    };
    try {
      const opened = await logIn(this.#connection, begin, { answer, signal });
      return new Session(this.#connection, opened);
    } catch (error) {
      // The host does not wait for an answer that nobody gives.
      if (begun !== undefined)
        this.session(begun)
          .close()
          .catch(() => {});
      throw error;
    }
  }

  async #beginLogin(body: Schemas['NewSession'], signal?: AbortSignal) {
    for (let login = 1; ; login++) {
      let wasLost = false;
      const onLost = () => {
        wasLost = true;
      };
      const sending = { body, signal, timeoutMs: LOGIN_MS, onLost };
      try {
        return await unwrap(this.api.POST('/api/remotes', sending));
      } catch (error) {
        // A login ends with the connection that asked for it. One whose connection was not lost was cancelled by somebody.
        const isCut = wasLost && error instanceof WindlassError && error.code === 'cancelled';
        if (!isCut || login === MAX_LOGINS) throw error;
      }
    }
  }

  /** A session that is open already. Nothing is asked of the service. */
  session(sid: string): Session {
    return new Session(this.#connection, { sid });
  }

  /** A job that was started before, here or elsewhere. */
  follow(job: string, options?: FollowOptions): Run {
    return new Run(this.#connection, async () => job, options);
  }

  /** A video that was asked for before, here or elsewhere, by the id of its job. Nothing is asked of the service. */
  async video(job: string): Promise<Video> {
    const { Video } = await import('./video.ts');
    return new Video(this.#connection, job);
  }

  /** The job when it has ended, in whatever state. */
  wait(job: string, options?: WaitOptions): Promise<Job> {
    return waitForEnd(this.#connection, job, options);
  }

  /** Asks for a job's end; false where it had ended before. */
  cancel(job: string, options?: { signal?: AbortSignal | undefined }): Promise<boolean> {
    return cancelJob(this.#connection, job, options);
  }

  /** Jobs that match, the latest first: `limit` of them, or all. Those of an `owner` are other people's for an administrator. */
  jobs(options?: JobsOptions & { owner?: undefined }): AsyncGenerator<Job>;
  jobs(options: JobsOptions): AsyncGenerator<ListedJob>;
  async *jobs(options: JobsOptions = {}): AsyncGenerator<ListedJob> {
    const { listJobs } = await import('./list-jobs.ts');
    yield* listJobs(this.#connection, options);
  }

  /**
   * Sends one or more files into a model, in parts, and waits until they are parsed. Returns the parse job. Lost
   * connections are repeated; `resume` continues what another page or program began.
   */
  async upload(files: Files, options: UploadOptions): Promise<Job> {
    // What not every page needs is loaded where it is.
    const { upload } = await import('./upload.ts');
    return upload(this.#connection, files, options);
  }

  /** Rows of a table of a model, sorted and filtered as asked for, however many there are. */
  async *rows(mid: string, aid: string, options: RowsOptions = {}): AsyncGenerator<Row> {
    const { readRows } = await import('./rows.ts');
    yield* readRows(this.#connection, { mid, aid }, options);
  }

  /**
   * One page of rows with the number of all: 100 unless `limit` says so, at most 10,000. With the `tag` of an earlier
   * answer it throws `changed` where another table has replaced that one.
   */
  async rowsPage(
    mid: string,
    aid: string,
    options: RowsOptions & { tag?: string | undefined } = {},
  ): Promise<RowsPage & { tag: string | undefined }> {
    const { readPage } = await import('./rows.ts');
    return readPage(this.#connection, { mid, aid }, options);
  }
}
