import type { Response } from 'express';
import { WindlassError } from '../../../shared/errors.ts';

/** What an answer that stays open is: how it is called, and what to do where there are too many. */
const KINDS = {
  read: {
    what: 'event streams and outputs open here',
    hint: 'Close some; one stream for each job is enough.',
  },
  held: {
    what: 'requests held here until a job has changed',
    hint: 'Have fewer wait; one for each job is enough.',
  },
};

/**
 * The answers that each user keeps open: what they read of jobs as it comes, or as slowly as they like, and what is held
 * until a job has changed. Each holds memory.
 */
export class OpenAnswers {
  readonly #kind: keyof typeof KINDS;
  readonly #most: number;
  readonly #open = new Map<string, number>();

  /** `most` of one user at once; 0: no limit. */
  constructor(kind: keyof typeof KINDS, most: number) {
    this.#kind = kind;
    this.#most = most;
  }

  /** Counts the answer until it is closed. Throws `too_many_requests` where it is one too many. */
  add(user: string, res: Response): void {
    const open = this.#open.get(user) ?? 0;
    if (this.#most > 0 && open >= this.#most) {
      const { what, hint } = KINDS[this.#kind];
      throw new WindlassError('too_many_requests', {
        detail: `You have ${this.#most} ${what}, which is the limit.`,
        hint: `${hint} LIMIT_STREAMS sets the limit.`,
        headers: { 'Retry-After': '10' },
      });
    }
    // It has left, and `close` came before anybody listened here.
    if (res.destroyed) return;
    this.#open.set(user, open + 1);
    res.once('close', () => this.#remove(user));
  }

  #remove(user: string): void {
    const left = (this.#open.get(user) ?? 0) - 1;
    if (left > 0) this.#open.set(user, left);
    else this.#open.delete(user);
  }
}
