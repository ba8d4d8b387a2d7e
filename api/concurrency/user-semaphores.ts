import { Semaphore } from './semaphore.ts';

/** Lets each user do so many pieces of work at once; their others wait, and nobody else's do. */
export class UserSemaphores {
  readonly #atOnce: number;
  readonly #users = new Map<string, { semaphore: Semaphore; inside: number }>();

  constructor(atOnce: number) {
    this.#atOnce = atOnce;
  }

  /** Whether a piece of this user's work waits. */
  hasWaiters(user: string): boolean {
    return this.#users.get(user)?.semaphore.hasWaiters ?? false;
  }

  async take<T>(user: string, work: () => Promise<T>): Promise<T> {
    const own = this.#users.get(user) ?? { semaphore: new Semaphore(this.#atOnce), inside: 0 };
    this.#users.set(user, own);
    own.inside++;
    try {
      return await own.semaphore.take(work);
    } finally {
      if (--own.inside === 0) this.#users.delete(user);
    }
  }
}
