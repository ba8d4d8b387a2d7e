import type { WindlassError } from './error.ts';
import { escapeId } from './escape-path.ts';
import { BrokenStream, readEvents } from './event-stream.ts';
import { foreignAnswer } from './foreign-answer.ts';
import { type Http, unreachable } from './http.ts';
import { type Bytes, type Chunk, type Line, type OutputStream, toLines } from './lines.ts';
import type { Options } from './options.ts';
import type { components } from './schema.ts';

export type Offsets = Record<OutputStream, number>;
export type JobState = components['schemas']['Job']['state'];

/** What happens to a job, in the order in which it does. The end state comes after all output. */
export type JobEvent =
  /** `message`: why a job without progress waits. */
  | {
      event: 'state';
      state: JobState;
      message?: string;
      error?: components['schemas']['JobError'];
    }
  | { event: 'progress'; progress: number; message?: string }
  | ({ event: 'output' } & Chunk);

export interface FollowOptions {
  /** Ends it, with the signal's reason as error. The job goes on. */
  signal?: AbortSignal | undefined;
  /** How much of each stream is known already, in bytes. */
  from?: Options<Partial<Offsets>> | undefined;
  /** A silent stream is opened again after so many seconds: the service sends something every 15. */
  silence?: number | undefined;
}

/**
 * A job as it goes on, over any number of connections: its lines, its output as it came, or all its events. Each loop
 * reads from the beginning (or `from`) to the job's end. Only `signal`, leaving the loop, and an answer such as 404 end
 * it earlier.
 */
export class Follow implements AsyncIterable<Line> {
  readonly #http: Http;
  readonly #job: Promise<string>;
  readonly #options: FollowOptions;

  constructor(http: Http, job: Promise<string>, options: FollowOptions) {
    this.#http = http;
    this.#job = job;
    this.#options = options;
  }

  [Symbol.asyncIterator](): AsyncGenerator<Line> {
    return this.lines();
  }

  /** Lines of text, each when it is whole. */
  lines(): AsyncGenerator<Line> {
    return toLines(this.chunks());
  }

  /** The bytes as they come, unsplit. */
  async *chunks(): AsyncGenerator<Chunk> {
    for await (const event of this.events()) {
      if (event.event !== 'output') continue;
      const { event: _, ...chunk } = event;
      yield chunk;
    }
  }

  /** States, progress and output. */
  async *events(): AsyncGenerator<JobEvent> {
    const { signal, from, silence = 45 } = this.#options;
    const path = `/api/jobs/${escapeId(await this.#job)}/events`;
    const at: Offsets = { stdout: from?.stdout ?? 0, stderr: from?.stderr ?? 0 };
    /** The last event of each kind: a new connection begins by repeating it. */
    const told: Record<string, string> = {};
    for (let attempt = 0; ; attempt++) {
      let lost: WindlassError;
      try {
        const headers = {
          Accept: 'text/event-stream',
          'Last-Event-ID': `${at.stdout}-${at.stderr}`,
        };
        // The answer begins at once; a connection that was kept from before may be dead.
        const sending = { signal, patience: Infinity, timeoutMs: silence * 1_000 };
        const response = await this.#http.request(path, { headers }, sending);
        // All has been told: the answer is 204.
        if (response.status === 204 || !response.body) return;
        if (!/\bevent-stream\b/.test(response.headers.get('Content-Type') ?? '')) {
          await response.body.cancel();
          throw foreignAnswer(response, 'no event stream');
        }
        for await (const { event, data } of readEvents(response.body, silence * 1_000)) {
          attempt = 0;
          if (event === 'end') return;
          if (event === 'output') {
            const chunk = takeOutput(data, at);
            if (chunk) yield { event, ...chunk };
          } else if (told[event] !== data) {
            told[event] = data;
            yield { event, ...JSON.parse(data) };
          }
        }
        // The service stops in an orderly way, and another process of it goes on.
        lost = unreachable(this.#http.base, 'the stream has ended');
      } catch (error) {
        signal?.throwIfAborted();
        if (!(error instanceof BrokenStream)) throw error;
        lost = unreachable(this.#http.base, error.cause);
      }
      await this.#http.pause(attempt, { error: lost, signal });
    }
  }
}

interface OutputData {
  stream: OutputStream;
  offset: number;
  time?: string;
  text?: string;
  base64?: string;
}

/** What is new of an output event, which `at` then counts as known. */
function takeOutput(data: string, at: Offsets): Chunk | undefined {
  const { stream, offset, time, text, base64 } = JSON.parse(data) as OutputData;
  const all = text === undefined ? fromBase64(base64 ?? '') : new TextEncoder().encode(text);
  const known = at[stream] - offset;
  if (known < 0)
    throw new Error(`Of ${stream} ${-known} bytes from ${at[stream]} on were left out.`);
  if (known >= all.length) return undefined;
  const chunk = { stream, offset: offset + known, bytes: all.subarray(known), time };
  at[stream] = offset + all.length;
  return chunk;
}

function fromBase64(text: string): Bytes {
  return Uint8Array.from(atob(text), character => character.charCodeAt(0));
}
