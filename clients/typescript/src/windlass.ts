import { type Api, createApi, unwrap } from './api.ts';
import type { Connection } from './connection.ts';
import { WindlassError } from './error.ts';
import { Follow, type FollowOptions } from './follow.ts';
import { type ConnectionOptions, Http } from './http.ts';
import { cancelJob, type Job, type WaitOptions, waitForEnd } from './jobs.ts';
import { type LoginOptions, logIn } from './login.ts';
import type { components, operations } from './schema.ts';
import { Session } from './session.ts';

type Schemas = components['schemas'];
export type OpenOptions = Omit<Schemas['NewSession'], 'hostname'> & LoginOptions;
export type JobFilter = NonNullable<operations['listJobs']['parameters']['query']>;
export type ListedJob = Job | Schemas['ForeignJob'];

/** How often a login is begun anew that the service cancelled because the connection to it was lost. */
const MOST_LOGINS = 3;

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

  /** Logs in to a host. */
  async open(hostname: string, { answer, signal, ...options }: OpenOptions): Promise<Session> {
    const begin = async () => {
      for (let login = 1; ; login++) {
        try {
          const body = { hostname, ...options };
          return await unwrap(this.api.POST('/api/remotes', { body, signal }));
        } catch (error) {
          // A login ends with the connection that asked for it; it was not refused.
          const isCut = error instanceof WindlassError && error.code === 'cancelled';
          if (!isCut || login === MOST_LOGINS) throw error;
        }
      }
    };
    return new Session(this.#connection, await logIn(this.#connection, begin, { answer, signal }));
  }

  /** A session that is open already. Nothing is asked of the service. */
  session(sid: string): Session {
    return new Session(this.#connection, { sid });
  }

  /** A job as it goes on. */
  follow(job: string, options?: FollowOptions): Follow {
    return new Follow(this.#connection.http, async () => job, options);
  }

  /** The job when it has ended, in whatever state. */
  wait(job: string, options?: WaitOptions): Promise<Job> {
    return waitForEnd(this.#connection, job, options);
  }

  /** Asks for a job's end; false where it had ended before. */
  cancel(job: string, options?: { signal?: AbortSignal }): Promise<boolean> {
    return cancelJob(this.#connection, job, options);
  }

  /** All jobs that match, the latest first; `limit` is the size of a page. */
  async *jobs({
    signal,
    ...filter
  }: JobFilter & { signal?: AbortSignal } = {}): AsyncGenerator<ListedJob> {
    for (let after: string | undefined | null = filter.after; after !== null; ) {
      const query: JobFilter = { ...filter, after };
      const page = await unwrap(this.api.GET('/api/jobs', { params: { query }, signal }));
      yield* page.items;
      after = page.next;
    }
  }
}
