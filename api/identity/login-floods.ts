import { WindlassError } from '../../shared/errors/errors.ts';

/** Refused logins of one address in one second, after which others of that second are refused unread. */
const REFUSALS = 20;

/**
 * Who goes on sending logins though they are refused. Each refusal costs the reading of a body and looks at several locks,
 * 0.3 ms, which thousands a second take from everybody else; one that is refused here costs half of that.
 */
export class LoginFloods {
  #second = 0;
  /** By address, in this second. */
  #refusals = new Map<string, number>();

  /** `too_many_requests` for the rest of a second in which too many of the address were refused. */
  refusal(address: string): WindlassError | undefined {
    return (this.#counts().get(address) ?? 0) >= REFUSALS ? FLOOD : undefined;
  }

  /** Counts an attempt that ended in this error. */
  count(address: string, error: unknown): void {
    if (!(error instanceof WindlassError && error.code === 'too_many_requests')) return;
    const counts = this.#counts();
    counts.set(address, (counts.get(address) ?? 0) + 1);
  }

  #counts(): Map<string, number> {
    const now = Math.floor(performance.now() / 1_000);
    if (now !== this.#second) {
      this.#second = now;
      this.#refusals = new Map();
    }
    return this.#refusals;
  }
}

/** One for all: the stack of an error is a good part of what a refusal costs. */
const FLOOD = new WindlassError('too_many_requests', {
  detail: `Too many requests: in this second, ${REFUSALS} logins from this address were refused already.`,
  hint: 'Wait a second, and send one at a time.',
  headers: { 'Retry-After': '1' },
});
