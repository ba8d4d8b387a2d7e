import { Turns } from './turns.ts';

/** Lets each user do so many pieces of work at once; their others wait, and nobody else's do. */
export class UserTurns {
  readonly #atOnce: number;
  readonly #users = new Map<string, { turns: Turns; inside: number }>();

  constructor(atOnce: number) {
    this.#atOnce = atOnce;
  }

  /** Whether a piece of this user's work waits. */
  areWanted(user: string): boolean {
    return this.#users.get(user)?.turns.areWanted ?? false;
  }

  async take<T>(user: string, work: () => Promise<T>): Promise<T> {
    const own = this.#users.get(user) ?? { turns: new Turns(this.#atOnce), inside: 0 };
    this.#users.set(user, own);
    own.inside++;
    try {
      return await own.turns.take(work);
    } finally {
      if (--own.inside === 0) this.#users.delete(user);
    }
  }
}
