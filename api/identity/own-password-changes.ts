import { WindlassError } from '../../shared/errors/errors.ts';
import { CountsPerSecond } from '../concurrency/counts-per-second.ts';
import { Floods } from '../concurrency/floods.ts';

/** Limit on the changes of one user in one second, in one process; each costs two hashes, of the old and of the new password. */
const CHANGES = 2;

/**
 * Changes of the own password, one at a time of each credential: each costs two hashes and four look-ups. A credential
 * that goes on after refusals is refused unread.
 */
export class OwnPasswordChanges {
  readonly #underWay = new Set<string>();
  readonly #made = new CountsPerSecond();
  readonly #floods = new Floods();

  /** Whether isFlood() may be true of any credential. */
  get seesFloods(): boolean {
    return !this.#floods.isEmpty;
  }

  /** Whether a change is one of a flood, and to be refused before it is looked at; then it is counted. */
  isFlood(credential: string): boolean {
    if (!this.#floods.includes(credential)) return false;
    this.#floods.count(credential);
    return true;
  }

  /** @param credential usedCredential(). Throws `too_many_requests` where another change is under way. */
  async run<T>(credential: string, change: () => Promise<T>): Promise<T> {
    if (this.#underWay.has(credential)) throw this.#refuse(credential);
    this.#underWay.add(credential);
    try {
      return await change();
    } finally {
      this.#underWay.delete(credential);
    }
  }

  /** Counts a change by someone who knows the password until now. Throws `too_many_requests`. */
  count(username: string, credential: string): void {
    if (this.#made.add(username) > CHANGES) throw this.#refuse(credential);
  }

  #refuse(credential: string): WindlassError {
    this.#floods.count(credential);
    return tooManyChanges();
  }
}

export const tooManyChanges = () =>
  new WindlassError('too_many_requests', {
    detail: `your password is changed one at a time, and at most ${CHANGES} times a second.`,
    hint: 'Wait two seconds, and change it once.',
    headers: { 'Retry-After': '2' },
  });
