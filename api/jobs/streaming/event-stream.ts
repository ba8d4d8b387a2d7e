import type { ServerResponse } from 'node:http';
import type { OutputOffsets } from '../../../shared/jobs/output.ts';
import { waitForDrain } from '../../http/wait-for-drain.ts';
import type { JobSummary } from '../views/job-summary.ts';
import { encodeEvent, type OutputFrame } from './event-frames.ts';

/** A comment after so many quiet seconds keeps proxies from closing the stream. */
const QUIET_SECONDS = 15;
/** A client that takes nothing for so long is cut off; it may come back and go on where it was. */
export const STALLED_SECONDS = 60;

/** What a row says to whoever follows the job, as the data of events. */
export interface News {
  state: string;
  progress: string | undefined;
  ended: boolean;
}

export function describeNews({ state, error, progress, message, finished }: JobSummary): News {
  return {
    state: JSON.stringify({ state, ...(error ? { error } : {}) }),
    progress:
      progress === null ? undefined : JSON.stringify({ progress, ...(message ? { message } : {}) }),
    ended: finished !== null,
  };
}

/**
 * One client of a job's events. There are thousands: each holds nothing but how far it was sent, and nothing of it runs
 * or waits while it is up to date.
 */
export class EventStream {
  /** Whether somebody sees to it, and will look for what is new afterwards. */
  busy = false;
  readonly #out: ServerResponse;
  #at: OutputOffsets;
  #state: string | undefined;
  #progress: string | undefined;
  /** Seconds since something was sent, or while the client does not take what was. */
  #quiet = 0;

  constructor(out: ServerResponse, at: OutputOffsets) {
    this.#out = out;
    this.#at = at;
  }

  /** How far the output was sent. */
  get at(): OutputOffsets {
    return this.#at;
  }

  get closed(): boolean {
    return this.#out.destroyed || this.#out.writableEnded;
  }

  /** Whether the client must take what was sent before it is sent more. */
  get full(): boolean {
    return this.#out.writableNeedDrain;
  }

  /** Calls back when it is no longer full; not at all if the client leaves instead. */
  onDrain(callback: () => void): void {
    this.#out.once('drain', callback);
  }

  /** True as soon as it is not full, false after so long. */
  drainsWithin(ms: number): boolean | Promise<boolean> {
    if (this.closed || !this.full) return !this.closed;
    return waitForDrain(this.#out, ms);
  }

  /** State and progress. The end state is told by finish(), after all output; but the present state always comes first. */
  tell(news: News): void {
    if (this.#state === undefined || !news.ended) this.#tellState(news.state);
    if (news.progress === undefined || news.progress === this.#progress) return;
    this.#progress = news.progress;
    this.#write(encodeEvent('progress', this.#at, news.progress));
  }

  take({ bytes, at }: OutputFrame): void {
    this.#at = at;
    this.#write(bytes);
  }

  finish(news: News): void {
    this.#tellState(news.state);
    this.end();
  }

  /** Ends the stream between two events: the client asks again from its last one on. */
  end(): void {
    this.#out.end();
  }

  /** Cut off, not ended: the client sees that more would have come. */
  cut(): void {
    this.#out.destroy();
  }

  /** To be called once a second. */
  tick(): void {
    this.#quiet++;
    if (this.full) {
      if (this.#quiet >= STALLED_SECONDS) this.cut();
    } else if (this.#quiet >= QUIET_SECONDS) this.#write(':\n\n');
  }

  #tellState(state: string): void {
    if (state === this.#state) return;
    this.#state = state;
    this.#write(encodeEvent('state', this.#at, state));
  }

  #write(text: string | Buffer): void {
    if (this.closed) return;
    this.#quiet = 0;
    this.#out.write(text);
  }
}
