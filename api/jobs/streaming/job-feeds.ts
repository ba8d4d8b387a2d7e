import type { JobSummary } from '../../../shared/jobs/job-record.ts';
import type { ApiContext } from '../../context.ts';
import { toWindlassError } from '../../http/to-windlass-error.ts';
import type { EventStream } from './event-stream.ts';
import { JobFeed } from './job-feed.ts';
import type { OutputReader } from './output-reader.ts';

type Needs = Pick<ApiContext, 'jobWatch' | 'log' | 'revocations' | 'stopping'>;

/** The event streams of this process: those of one job share one subscription to its row, and all share one timer. */
export class JobFeeds {
  readonly #needs: Needs;
  readonly #output: OutputReader;
  readonly #feeds = new Map<string, { feed: JobFeed; unsubscribe(): void }>();

  constructor(needs: Needs, output: OutputReader) {
    this.#needs = needs;
    this.#output = output;
    setInterval(() => this.#each(stream => stream.tick()), 1_000).unref();
    needs.stopping.addEventListener('abort', () => this.#each(stream => stream.end()));
    // Clients whose credentials are still valid reconnect, and resume.
    needs.revocations.onRevoked(username => {
      if (username === undefined) return this.#each(stream => stream.end());
      // A job's owner alone may follow it.
      this.#each(
        stream => stream.abort(),
        feed => feed.owner === username,
      );
    });
  }

  /** Adds a stream that begins with this row; it ends by itself or by remove(). */
  add(stream: EventStream, row: JobSummary): void {
    const { feed } = this.#feeds.get(row.id) ?? this.#open(row);
    feed.add(stream, row);
    if (this.#needs.stopping.aborted) stream.end();
  }

  remove(stream: EventStream, job: string): void {
    const found = this.#feeds.get(job);
    if (!found?.feed.streams.delete(stream) || found.feed.streams.size > 0) return;
    this.#feeds.delete(job);
    found.unsubscribe();
  }

  #open(row: JobSummary): { feed: JobFeed; unsubscribe(): void } {
    const feed = new JobFeed(row, this.#output, error => this.#reportFailure(row.id, error));
    const unsubscribe = this.#needs.jobWatch.subscribe(row, next => feed.change(next));
    const opened = { feed, unsubscribe };
    this.#feeds.set(row.id, opened);
    return opened;
  }

  #reportFailure(job: string, error: unknown): void {
    const level = toWindlassError(error).code === 'internal' ? 'error' : 'debug';
    this.#needs.log[level]({ err: error, job }, 'event streams were aborted');
  }

  #each(action: (stream: EventStream) => void, of = (_feed: JobFeed) => true): void {
    for (const { feed } of this.#feeds.values())
      if (of(feed)) for (const stream of feed.streams) action(stream);
  }
}
