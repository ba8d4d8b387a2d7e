import type { Response } from 'express';
import { WindlassError } from '../../shared/errors.ts';

/** What each user reads of jobs as it comes, or as slowly as it likes: an answer that is open holds memory. */
export class OpenAnswers {
  readonly #most: number;
  readonly #open = new Map<string, number>();

  /** `most` of one user at once; 0: no limit. */
  constructor(most: number) {
    this.#most = most;
  }

  /** Counts the answer until it is closed. Throws `too_many_requests` where it is one too many. */
  add(user: string, res: Response): void {
    const open = this.#open.get(user) ?? 0;
    if (this.#most > 0 && open >= this.#most)
      throw new WindlassError('too_many_requests', {
        detail: `You have ${this.#most} event streams and outputs open here, which is the limit.`,
        hint: 'Close some; one stream for each job is enough. LIMIT_STREAMS sets the limit.',
        headers: { 'Retry-After': '10' },
      });
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
