import type { WorkerContext } from '../../context.ts';
import { DATABASE, retry } from '../../engine/retry.ts';
import { keepSegment, type SegmentClaim } from './segment-rows.ts';

const BEAT_MS = 1_000;
/** Frames that are read without asking again, at least. */
const LEAST_SURE = 16;

/** Thrown where another worker has the segment, or nobody wants it any more. */
export class SegmentRevoked extends Error {
  constructor(id: string) {
    super(`the segment ${id} was revoked`);
    this.name = 'SegmentRevoked';
  }
}

/**
 * A segment that this worker encodes. Once offered, its end may come nearer: each second, and before reading frames
 * that may have been taken, it writes how far it will surely read and learns its end (decision 57).
 */
export class Segment {
  readonly start: number;
  readonly job: string;
  /** Frames of the other segments that are encoded. */
  others = 0;
  /** Frames of this one that are encoded. */
  done = 0;
  #until: number;
  #sure: number;
  /** How far frames were read, now and at the last beat. */
  #read: number;
  #readBefore: number;
  #began: number | undefined;
  #claim: SegmentClaim | undefined;
  #beating: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  readonly #worker: WorkerContext;
  readonly #revoked = new AbortController();

  constructor(
    worker: WorkerContext,
    { job, start, until }: { job: string; start: number; until: number },
  ) {
    this.#worker = worker;
    this.job = job;
    this.start = start;
    this.#until = until;
    this.#sure = until;
    this.#read = start;
    this.#readBefore = start;
  }

  get until(): number {
    return this.#until;
  }

  get length(): number {
    return this.#until - this.start;
  }

  get claim(): SegmentClaim | undefined {
    return this.#claim;
  }

  /** Aborted with SegmentRevoked. */
  get revoked(): AbortSignal {
    return this.#revoked.signal;
  }

  /** How long it has been encoded: since its first frame was read. */
  get elapsedMs(): number {
    return this.#began === undefined ? 0 : performance.now() - this.#began;
  }

  /** Estimated seconds for the rest, at the speed so far; 0 if unknown. */
  get secondsLeft(): number {
    return this.done > 0 ? ((this.length - this.done) * this.elapsedMs) / this.done / 1_000 : 0;
  }

  /** Lets others take unread frames, once `offer` has recorded how far it will surely read. */
  split(offer: (sure: number) => Promise<SegmentClaim>): void {
    this.#sure = Math.min(this.#until, this.#read + LEAST_SURE);
    const offering = offer(this.#sure).then(claim => this.hold(claim));
    this.#beating = this.#onlyOne(offering);
    this.#beating.catch((error: unknown) => this.#revoked.abort(error));
  }

  /** It is in the database: it is kept until close(). */
  hold(claim: SegmentClaim): void {
    if (this.#isClosed) return;
    this.#claim = claim;
    this.#sure = Math.min(this.#sure, Math.max(this.#read, this.start));
    this.#timer = setInterval(() => void this.#beat().catch(() => {}), BEAT_MS);
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#timer);
  }

  /** Its own frames, which follow the first `before`. A second call reads from the beginning. */
  async *own<T>(frames: AsyncIterable<T>, before: number): AsyncGenerator<T> {
    this.done = 0;
    this.#began = performance.now();
    let at = this.start - before;
    for await (const frame of frames) {
      if (at >= this.start && !(await this.#mayRead(at))) return;
      at++;
      yield frame;
    }
  }

  async #mayRead(at: number): Promise<boolean> {
    while (at >= this.#sure && at < this.#until) await this.#beat();
    if (at >= this.#until) return false;
    this.#read = Math.max(this.#read, at + 1);
    return true;
  }

  #beat(): Promise<void> {
    this.#beating ??= this.#onlyOne(this.#write());
    return this.#beating;
  }

  #onlyOne(writing: Promise<void>): Promise<void> {
    return writing.finally(() => {
      this.#beating = undefined;
    });
  }

  async #write(): Promise<void> {
    this.#revoked.signal.throwIfAborted();
    const claim = this.#claim;
    if (!claim) throw new Error('a segment that was not offered keeps its end');
    const { database, config, notifications } = this.#worker;
    // Twice what was read since, so that a fast segment also asks about once a second.
    const ahead = Math.max(LEAST_SURE, 2 * (this.#read - this.#readBefore));
    this.#readBefore = this.#read;
    const said = { sure: this.#read + ahead, done: this.done };
    const kept = await retry(() => keepSegment(database.db, claim, said), DATABASE);
    if (!kept) {
      this.#revoked.abort(new SegmentRevoked(claim.id));
      this.#revoked.signal.throwIfAborted();
      return;
    }
    this.#until = kept.until;
    this.#sure = kept.sure;
    this.others = kept.others;
    if (this.secondsLeft >= config.VIDEO_SHARE_SECONDS) notifications.publish('segment', this.job);
  }
}
