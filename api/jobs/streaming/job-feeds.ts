import type { ApiContext } from '../../context.ts';
import { toWindlassError } from '../../middleware/errors.ts';
import type { JobSummary } from '../views/job-summary.ts';
import type { EventStream } from './event-stream.ts';
import { JobFeed } from './job-feed.ts';
import type { OutputReader } from './output-reader.ts';

type Needs = Pick<ApiContext, 'jobs' | 'log' | 'notifications' | 'stopping'>;

/** The event streams of this process: those of one job share one watch of its row, and all of them one timer. */
export class JobFeeds {
  readonly #needs: Needs;
  readonly #output: OutputReader;
  readonly #feeds = new Map<string, { feed: JobFeed; unfollow(): void }>();

  constructor(needs: Needs, output: OutputReader) {
    this.#needs = needs;
    this.#output = output;
    setInterval(() => this.#each(stream => stream.tick()), 1_000).unref();
    needs.stopping.addEventListener('abort', () => this.#each(stream => stream.end()));
    // Who may no longer follow might have been told meanwhile: all others go on where they were.
    needs.notifications.onMissed(() => this.#each(stream => stream.end()));
    // A job is followed by its owner alone. Whoever still may comes back with credentials, and goes on.
    needs.notifications.on('user', username => {
      this.#each(
        stream => stream.cut(),
        feed => feed.owner === username,
      );
    });
  }

  /** Feeds the stream, which begins at this row, until it ends or remove() is called. */
  add(stream: EventStream, row: JobSummary): void {
    const { feed } = this.#feeds.get(row.id) ?? this.#begin(row);
    feed.add(stream, row);
    if (this.#needs.stopping.aborted) stream.end();
  }

  remove(stream: EventStream, job: string): void {
    const found = this.#feeds.get(job);
    if (!found?.feed.streams.delete(stream) || found.feed.streams.size > 0) return;
    this.#feeds.delete(job);
    found.unfollow();
  }

  #begin(row: JobSummary): { feed: JobFeed; unfollow(): void } {
    const feed = new JobFeed(row, this.#output, error => this.#reportFailure(row.id, error));
    const unfollow = this.#needs.jobs.follow(row, next => feed.change(next));
    const begun = { feed, unfollow };
    this.#feeds.set(row.id, begun);
    return begun;
  }

  #reportFailure(job: string, error: unknown): void {
    const level = toWindlassError(error).code === 'internal' ? 'error' : 'debug';
    this.#needs.log[level]({ err: error, job }, 'event streams were cut off');
  }

  #each(action: (stream: EventStream) => void, of = (_feed: JobFeed) => true): void {
    for (const { feed } of this.#feeds.values())
      if (of(feed)) for (const stream of feed.streams) action(stream);
  }
}
