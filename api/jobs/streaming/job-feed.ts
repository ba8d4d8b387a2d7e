import type { OutputRange } from '../../../shared/jobs/output.ts';
import type { JobSummary } from '../views/job-summary.ts';
import { describeNews, type EventStream, type News } from './event-stream.ts';
import { DRAIN_MS, type OutputReader, SHORT_BYTES, spanBytes } from './output-reader.ts';

/** The event streams of one job: what is new is read and encoded once for all that stand at the same place. */
export class JobFeed {
  readonly streams = new Set<EventStream>();
  readonly #output: OutputReader;
  readonly #onFailure: (error: unknown) => void;
  /** Who waits for a read that is under way, by what is read. */
  readonly #groups = new Map<string, EventStream[]>();
  #row: JobSummary;
  #news: News;

  constructor(row: JobSummary, output: OutputReader, onFailure: (error: unknown) => void) {
    this.#row = row;
    this.#news = describeNews(row);
    this.#output = output;
    this.#onFailure = onFailure;
  }

  get owner(): string {
    return this.#row.owner;
  }

  /** Feeds the stream, which begins at this row. */
  add(stream: EventStream, row: JobSummary): void {
    this.streams.add(stream);
    this.change(row);
    this.#advance(stream);
  }

  /** The row as it was read now, perhaps not the latest; undefined: the job is gone. */
  change(row: JobSummary | undefined): void {
    if (!row) for (const stream of this.streams) stream.end();
    if (!row || row.version <= this.#row.version) return;
    this.#row = row;
    this.#news = describeNews(row);
    for (const stream of this.streams) this.#advance(stream);
  }

  /** Sends what is new of the job. A stream that is up to date costs nothing until the next change. */
  #advance(stream: EventStream): void {
    if (stream.busy || stream.closed) return;
    if (stream.full) {
      stream.busy = true;
      stream.onDrain(() => this.#free(stream));
      return;
    }
    const row = this.#row;
    stream.tell(this.#news);
    const until = { stdout: row.stdoutBytes, stderr: row.stderrBytes };
    const span = { from: stream.at, until };
    const bytes = spanBytes(span);
    stream.busy = true;
    if (bytes === 0) this.#afterRead(stream, row);
    else if (bytes <= SHORT_BYTES) this.#join(stream, row, span);
    else void this.#catchUp(stream, row, span);
  }

  #free(stream: EventStream): void {
    stream.busy = false;
    this.#advance(stream);
  }

  /** All output that this row tells of was sent. */
  #afterRead(stream: EventStream, row: JobSummary): void {
    stream.busy = false;
    if (this.#row !== row) this.#advance(stream);
    else if (row.finished) stream.finish(this.#news);
  }

  /** Waits for the read that others at the same place wait for, or begins it. */
  #join(stream: EventStream, row: JobSummary, span: OutputRange): void {
    const key = `${row.version} ${span.from.stdout}-${span.from.stderr}`;
    const group = this.#groups.get(key);
    if (group) group.push(stream);
    else void this.#readFor([stream], { key, row, span });
  }

  async #readFor(
    group: EventStream[],
    { key, row, span }: { key: string; row: JobSummary; span: OutputRange },
  ): Promise<void> {
    this.#groups.set(key, group);
    try {
      const frames = await this.#output.readShort(row.id, span, row.finished !== null);
      this.#groups.delete(key);
      for (const stream of group) {
        for (const frame of frames) stream.take(frame);
        this.#afterRead(stream, row);
      }
    } catch (error) {
      this.#groups.delete(key);
      this.#fail(group, error);
    }
  }

  async #catchUp(stream: EventStream, row: JobSummary, span: OutputRange): Promise<void> {
    let whole: boolean;
    try {
      const long = { span, complete: row.finished !== null };
      whole = await this.#output.readLong(row, long, {
        take: frame => {
          stream.take(frame);
          return stream.drainsWithin(DRAIN_MS);
        },
        get gone() {
          return stream.closed;
        },
      });
    } catch (error) {
      return this.#fail([stream], error);
    }
    if (whole) this.#afterRead(stream, row);
    else this.#free(stream);
  }

  #fail(streams: EventStream[], error: unknown): void {
    for (const stream of streams) stream.cut();
    this.#onFailure(error);
  }
}
