import { WindlassError } from '../../shared/errors/errors.ts';
import { LeakyBuckets } from '../concurrency/leaky-buckets.ts';

/** Seconds after which one more credential may be made, once a burst is used up. */
const SECONDS = 3;
const LOGIN_BURST = 20;
const PASSWORD_BURST = 20;
/** Tokens at once: all that a user may have. */
const TOKEN_BURST = 100;

/**
 * How often one user logs in, makes tokens and changes the own password, in this process. Each leaves entries of the audit
 * for a year, also on a disk that is nearly full: there users must still get in, to remove what they stored.
 */
export class CredentialRates {
  readonly #logins = new LeakyBuckets({ atOnce: LOGIN_BURST, seconds: SECONDS });
  readonly #tokens = new LeakyBuckets({ atOnce: TOKEN_BURST, seconds: SECONDS });
  readonly #passwords = new LeakyBuckets({ atOnce: PASSWORD_BURST, seconds: SECONDS });

  /** Counts a login of someone who was identified. Throws `too_many_requests`. */
  countLogin(username: string): void {
    const wait = this.#logins.add(username);
    if (wait > 0) throw tooOften(`at most ${LOGIN_BURST} logins in one burst`, wait);
  }

  /** Counts a change by someone who knows the password until now. Throws `too_many_requests`. */
  countPassword(username: string): void {
    const wait = this.#passwords.add(username);
    if (wait > 0) throw tooOften(`at most ${PASSWORD_BURST} new passwords in one burst`, wait);
  }

  /** Counts a new token. Throws `too_many_requests`. */
  countToken(username: string): void {
    const wait = this.#tokens.add(username);
    if (wait > 0) throw tooOften(`at most ${TOKEN_BURST} new tokens in one burst`, wait);
  }
}

const tooOften = (bound: string, seconds: number) =>
  new WindlassError('too_many_requests', {
    detail: `${bound}, and then one in ${SECONDS} seconds.`,
    hint: `Wait ${seconds} s. One password, login or token is for many requests.`,
    headers: { 'Retry-After': String(seconds) },
  });
