import type { JobSummary } from '../../../shared/jobs/job-record.ts';
import type { OutputRange } from '../../../shared/jobs/output.ts';
import { type EventStream, type JobUpdate, toUpdate } from './event-stream.ts';
import { isNewer } from './job-watch.ts';
import { type OutputReader, rangeBytes, SMALL_BYTES, WRITE_TIMEOUT_MS } from './output-reader.ts';

/** Fans one job's changes out to its event streams: output is read and encoded once for all streams at the same offsets. */
export class JobFeed {
  readonly streams = new Set<EventStream>();
  /** Who owned the job when the feed was opened, and alone may follow it: a removed user's jobs become nobody's. */
  readonly owner: string;
  readonly #output: OutputReader;
  readonly #onFailure: (error: unknown) => void;
  /** The streams that wait for a pending read, by version and offsets. */
  readonly #pendingReads = new Map<string, EventStream[]>();
  #row: JobSummary;
  #update: JobUpdate;

  constructor(row: JobSummary, output: OutputReader, onFailure: (error: unknown) => void) {
    this.owner = row.owner;
    this.#row = row;
    this.#update = toUpdate(row);
    this.#output = output;
    this.#onFailure = onFailure;
  }

  /** Adds a stream that begins with this row. */
  add(stream: EventStream, row: JobSummary): void {
    this.streams.add(stream);
    this.change(row);
    this.#advance(stream);
  }

  /** Takes a row that was read, perhaps an older one than before; undefined: the job was removed. */
  change(row: JobSummary | undefined): void {
    if (!row) for (const stream of this.streams) stream.end();
    if (!row || !isNewer(row, this.#row)) return;
    // The revocation may have come before a stream was added.
    if (row.owner !== this.owner) for (const stream of this.streams) stream.abort();
    this.#row = row;
    this.#update = toUpdate(row);
    for (const stream of this.streams) this.#advance(stream);
  }

  /** Sends what the stream lacks. */
  #advance(stream: EventStream): void {
    if (stream.busy || stream.closed) return;
    if (stream.full) {
      stream.busy = true;
      stream.onDrain(() => this.#resume(stream));
      return;
    }
    const row = this.#row;
    stream.sendUpdate(this.#update);
    const until = { stdout: row.stdoutBytes, stderr: row.stderrBytes };
    const range = { from: stream.at, until };
    const bytes = rangeBytes(range);
    stream.busy = true;
    if (bytes === 0) this.#afterRead(stream, row);
    else if (bytes <= SMALL_BYTES) this.#join(stream, row, range);
    else void this.#catchUp(stream, row, range);
  }

  #resume(stream: EventStream): void {
    stream.busy = false;
    this.#advance(stream);
  }

  /** All output of this row was sent. */
  #afterRead(stream: EventStream, row: JobSummary): void {
    stream.busy = false;
    // Stored output is gone when the job's record is removed: the stream must not look complete.
    const isShort = stream.at.stdout < row.stdoutBytes || stream.at.stderr < row.stderrBytes;
    if (this.#row !== row) this.#advance(stream);
    else if (row.finished && isShort) stream.abort();
    else if (row.finished) stream.finish(this.#update);
  }

  /** Joins the pending read of the same output, or starts one. */
  #join(stream: EventStream, row: JobSummary, range: OutputRange): void {
    const key = `${row.version} ${range.from.stdout}-${range.from.stderr}`;
    const group = this.#pendingReads.get(key);
    if (group) group.push(stream);
    else void this.#readFor([stream], { key, row, range });
  }

  async #readFor(
    group: EventStream[],
    { key, row, range }: { key: string; row: JobSummary; range: OutputRange },
  ): Promise<void> {
    this.#pendingReads.set(key, group);
    try {
      const frames = await this.#output.readSmall(row.id, range, row.finished !== null);
      this.#pendingReads.delete(key);
      for (const stream of group) {
        for (const frame of frames) stream.sendOutput(frame);
        this.#afterRead(stream, row);
      }
    } catch (error) {
      this.#pendingReads.delete(key);
      this.#fail(group, error);
    }
  }

  /** Sends much output to one stream, as fast as its client reads. */
  async #catchUp(stream: EventStream, row: JobSummary, range: OutputRange): Promise<void> {
    let isComplete: boolean;
    try {
      const all = { range, complete: row.finished !== null };
      isComplete = await this.#output.readLarge(row, all, {
        write: frame => {
          stream.sendOutput(frame);
          return stream.drainsWithin(WRITE_TIMEOUT_MS);
        },
        get closed() {
          return stream.closed;
        },
      });
    } catch (error) {
      return this.#fail([stream], error);
    }
    if (isComplete) this.#afterRead(stream, row);
    else this.#resume(stream);
  }

  #fail(streams: EventStream[], error: unknown): void {
    for (const stream of streams) stream.abort();
    this.#onFailure(error);
  }
}
