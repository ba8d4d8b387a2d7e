import { WindlassError } from '../../shared/errors/errors.ts';
import { LeakyBuckets } from '../concurrency/leaky-buckets.ts';
import { MAX_ADDRESS_LENGTH } from '../http/client-errors.ts';

/** What a line has beside path and query. */
const LINE_BYTES = 200;
const LONGEST = MAX_ADDRESS_LENGTH + LINE_BYTES;
const SECONDS = 60;

/** How many bytes of events a user sends, in this process: they are kept as long as the log is, and count for nobody. */
export class EventRates {
  readonly #bytes: LeakyBuckets | undefined;
  readonly #limit: number;

  /** @param limit bytes in a minute; 0: none */
  constructor(limit: number) {
    this.#limit = limit;
    if (limit === 0) return;
    // An event that has more bytes than a minute is taken as well, once those before it have had their minutes.
    const atOnce = Math.max(limit, LONGEST);
    this.#bytes = new LeakyBuckets({ atOnce, seconds: SECONDS / limit });
  }

  /** Throws `too_many_requests` for an event that is one too many. */
  count(username: string, length: number): void {
    const wait = this.#bytes?.add(username, LINE_BYTES + length) ?? 0;
    if (wait === 0) return;
    throw new WindlassError('too_many_requests', {
      detail: `More than ${this.#limit} bytes of events in a minute.`,
      hint: `Wait ${wait} s. LIMIT_EVENT_BYTES sets the limit.`,
      headers: { 'Retry-After': String(wait) },
    });
  }
}
