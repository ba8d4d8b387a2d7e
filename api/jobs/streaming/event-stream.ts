import type { ServerResponse } from 'node:http';
import { type JobSummary, messageOf } from '../../../shared/jobs/job-record.ts';
import type { OutputOffsets } from '../../../shared/jobs/output.ts';
import { waitForDrain } from '../../../shared/process/wait-for-drain.ts';
import { encodeEnd, encodeEvent, type OutputFrame } from './event-frames.ts';

/** Idle seconds after which a comment keeps proxies from closing the stream. */
const KEEPALIVE_SECONDS = 15;
/** Seconds after which a client that reads nothing is disconnected; it may resume with Last-Event-ID. */
export const STALLED_SECONDS = 60;

/** The data of a job's `state` and `progress` events. */
export interface JobUpdate {
  state: string;
  progress: string | undefined;
  ended: boolean;
}

export function toUpdate(row: JobSummary): JobUpdate {
  const { state, error, progress } = row;
  const text = messageOf(row);
  const message = text === null ? {} : { message: text };
  const ended = row.finished !== null;
  const withState = progress === null && !ended ? message : {};
  return {
    state: JSON.stringify({ state, ...withState, ...(error ? { error } : {}) }),
    progress: progress === null ? undefined : JSON.stringify({ progress, ...message }),
    ended,
  };
}

/** The event stream of one client. There are thousands: one that is up to date has no timer, and no buffer but the socket's. */
export class EventStream {
  /** A read or a drain is pending, after which JobFeed advances the stream. */
  busy = false;
  readonly #out: ServerResponse;
  readonly #ends: number;
  #at: OutputOffsets;
  #state: string | undefined;
  #progress: string | undefined;
  /** Seconds since the last write. */
  #idle = 0;

  /** `ends`: when the credential that opened it does. */
  constructor(out: ServerResponse, at: OutputOffsets, ends?: Date) {
    this.#out = out;
    this.#ends = ends?.getTime() ?? Number.POSITIVE_INFINITY;
    this.#at = at;
  }

  /** Offsets of the output sent so far. */
  get at(): OutputOffsets {
    return this.#at;
  }

  get closed(): boolean {
    return this.#out.destroyed || this.#out.writableEnded;
  }

  /** Backpressure: the client must read before it is sent more. */
  get full(): boolean {
    return this.#out.writableNeedDrain;
  }

  /** Calls back when it is no longer full; never if the client disconnects. */
  onDrain(callback: () => void): void {
    this.#out.once('drain', callback);
  }

  /** True once it is not full, false after `ms`. */
  drainsWithin(ms: number): boolean | Promise<boolean> {
    if (this.closed || !this.full) return !this.closed;
    return waitForDrain(this.#out, ms);
  }

  /** Sends state and progress where they changed, but the end state, which finish() sends after all output. */
  sendUpdate(update: JobUpdate): void {
    if (!update.ended) this.#sendState(update.state);
    if (update.progress === undefined || update.progress === this.#progress) return;
    this.#progress = update.progress;
    this.#write(encodeEvent('progress', this.#at, update.progress));
  }

  sendOutput({ bytes, at }: OutputFrame): void {
    this.#at = at;
    this.#write(bytes);
  }

  finish(update: JobUpdate): void {
    this.#sendState(update.state);
    this.#write(encodeEnd(this.#at));
    this.end();
  }

  /** Ends the stream between two events: the client reconnects and resumes. */
  end(): void {
    this.#out.end();
  }

  /** Closes the connection without an end: the client sees that the stream is incomplete. */
  abort(): void {
    this.#out.destroy();
  }

  /** The owner of the stream calls this once a second. */
  tick(): void {
    if (this.closed) return;
    if (Date.now() >= this.#ends) this.end();
    this.#idle++;
    if (this.full) {
      if (this.#idle >= STALLED_SECONDS) this.abort();
    } else if (this.#idle >= KEEPALIVE_SECONDS) this.#write(':\n\n');
  }

  #sendState(state: string): void {
    if (state === this.#state) return;
    this.#state = state;
    this.#write(encodeEvent('state', this.#at, state));
  }

  #write(text: string | Buffer): void {
    if (this.closed) return;
    this.#idle = 0;
    this.#out.write(text);
  }
}
