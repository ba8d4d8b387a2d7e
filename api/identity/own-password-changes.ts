import { WindlassError } from '../../shared/errors/errors.ts';
import { Floods } from '../concurrency/floods.ts';

/**
 * Changes of the own password, one at a time of each credential: each costs two hashes and four look-ups. CredentialRates
 * limits how many a user makes. A credential that goes on after refusals is refused unread.
 */
export class OwnPasswordChanges {
  readonly #underWay = new Set<string>();
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
    if (this.#underWay.has(credential)) {
      this.#floods.count(credential);
      throw tooManyChanges();
    }
    this.#underWay.add(credential);
    try {
      return await change();
    } catch (error) {
      if (error instanceof WindlassError && error.code === 'too_many_requests')
        this.#floods.count(credential);
      throw error;
    } finally {
      this.#underWay.delete(credential);
    }
  }
}

export const tooManyChanges = () =>
  new WindlassError('too_many_requests', {
    detail: 'your password is being changed: one change at a time.',
    hint: 'Wait two seconds, and change it once.',
    headers: { 'Retry-After': '2' },
  });
