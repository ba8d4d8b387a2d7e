import { Semaphore } from './semaphore.ts';

/** A semaphore for each user, which limits how many tasks of one user run at once. */
export class UserSemaphores {
  readonly #atOnce: number;
  readonly #users = new Map<string, { semaphore: Semaphore; active: number }>();

  constructor(atOnce: number) {
    this.#atOnce = atOnce;
  }

  /** Whether a task of this user waits. */
  hasWaiters(user: string): boolean {
    return this.#users.get(user)?.semaphore.hasWaiters ?? false;
  }

  /** Tasks of this user that wait or run. */
  count(user: string): number {
    return this.#users.get(user)?.active ?? 0;
  }

  async run<T>(user: string, task: () => Promise<T>): Promise<T> {
    const own = this.#users.get(user) ?? { semaphore: new Semaphore(this.#atOnce), active: 0 };
    this.#users.set(user, own);
    own.active++;
    try {
      return await own.semaphore.run(task);
    } finally {
      if (--own.active === 0) this.#users.delete(user);
    }
  }
}
