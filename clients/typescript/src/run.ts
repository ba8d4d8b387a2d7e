import type { Connection } from './connection.ts';
import { Follow, type FollowOptions } from './follow.ts';
import { cancelJob, errorOfJob, waitForEnd } from './jobs.ts';

/** What became of a command. */
export interface Result {
  /** The exit status; 128 + n where signal n ended it. 0 for a job that is no command. */
  returncode: number;
  /** Standard output, the first 10 MiB. */
  output: string;
  /** Standard error, likewise. */
  errors: string;
  /** There is more than that: at the job's output. */
  truncated: boolean;
  /** The id of its job. */
  job: string;
}

/**
 * A command, or any other job. A loop over it gets its lines as they come; leaving the loop, or an aborted signal, ends the
 * watching, not the command.
 */
export class Run extends Follow {
  /** The id of its job, as soon as the service has accepted it. Rejects where it was refused. */
  readonly job: Promise<string>;
  readonly #connection: Connection;
  readonly #signal: AbortSignal | undefined;

  /** `start` asks for it, and gives its job. */
  constructor(connection: Connection, start: () => Promise<string>, options: FollowOptions = {}) {
    const job = start();
    // Each use of it gets the rejection; a program that uses nothing of a run need not handle it.
    job.catch(() => {});
    super(connection.http, job, options);
    this.job = job;
    this.#connection = connection;
    this.#signal = options.signal;
  }

  /** Its result, whatever its exit status. Throws WindlassError where it did not end by itself. */
  async wait(): Promise<Result> {
    const { http } = this.#connection;
    const { readOutput } = await import('./output.ts');
    const signal = this.#signal;
    const ended = await waitForEnd(this.#connection, await this.job, { signal });
    if (ended.state !== 'succeeded') throw errorOfJob(ended);
    const { id: job, result } = ended;
    const [output, errors] = await Promise.all([
      readOutput(http, { job, stream: 'stdout', signal }),
      readOutput(http, { job, stream: 'stderr', signal }),
    ]);
    const truncated = output.truncated || errors.truncated;
    const returncode = result?.returncode ?? 0;
    return { returncode, output: output.text, errors: errors.text, truncated, job };
  }

  /** Ends it. False where it had ended before; see wait() for how. */
  async cancel(): Promise<boolean> {
    return cancelJob(this.#connection, await this.job);
  }
}
