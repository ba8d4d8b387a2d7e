import type { Connection } from './connection.ts';
import { Follow, type FollowOptions, type JobEvent } from './follow.ts';
import { cancelJob, errorOfJob, type Job, waitForEnd } from './jobs.ts';
import type { Chunk, Line } from './lines.ts';
import { readOutput } from './output.ts';

/** What became of a command. */
export interface Result {
  /** The exit status; 128 + n where signal n ended it. */
  returncode: number;
  /** Standard output, the first 10 MiB. */
  output: string;
  /** Standard error, likewise. */
  errors: string;
  /** There is more than that: at the job's output. */
  truncated: boolean;
  job: Job;
}

/**
 * A command that was asked for. A loop over it gets its lines as they come; leaving the loop, or an aborted signal, ends the
 * watching, not the command.
 */
export class Run implements AsyncIterable<Line> {
  /** The id of its job, as soon as the service has accepted it. Rejects where it was refused. */
  readonly job: Promise<string>;
  readonly #connection: Connection;
  readonly #follow: Follow;
  readonly #signal: AbortSignal | undefined;

  /** `start` asks for it, and gives its job. */
  constructor(connection: Connection, start: () => Promise<string>, options: FollowOptions) {
    this.#connection = connection;
    this.#signal = options.signal;
    this.job = start();
    // Each use of it is told; who uses nothing of a run need not handle that it was refused.
    this.job.catch(() => {});
    this.#follow = new Follow(connection.http, () => this.job, options);
  }

  [Symbol.asyncIterator](): AsyncGenerator<Line> {
    return this.#follow.lines();
  }

  /** As Follow.chunks(). */
  chunks(): AsyncGenerator<Chunk> {
    return this.#follow.chunks();
  }

  /** As Follow.events(). */
  events(): AsyncGenerator<JobEvent> {
    return this.#follow.events();
  }

  /** What became of it, whatever its exit status. Throws WindlassError where it did not come to its own end. */
  async wait(): Promise<Result> {
    const signal = this.#signal;
    const job = await waitForEnd(this.#connection, await this.job, { signal });
    if (job.state !== 'succeeded') throw errorOfJob(job);
    const [output, errors] = await Promise.all(
      (['stdout', 'stderr'] as const).map(stream =>
        readOutput(this.#connection.http, { job: job.id, stream, signal }),
      ),
    );
    const { returncode } = job.result as { returncode: number };
    return {
      returncode,
      output: output?.text ?? '',
      errors: errors?.text ?? '',
      truncated: Boolean(output?.truncated || errors?.truncated),
      job,
    };
  }

  /** Ends it on its host. False where it had ended before; what became of it tells wait(). */
  async cancel(): Promise<boolean> {
    return cancelJob(this.#connection, await this.job);
  }
}
