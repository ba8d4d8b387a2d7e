import type { Response } from 'express';
import { WindlassError } from '../../shared/errors/errors.ts';

/** What the error says where there are too many. */
const KINDS = {
  stream: {
    what: 'event streams and outputs open here',
    hint: 'Close some; one stream for each job is enough.',
  },
  'long-poll': {
    what: 'requests held here until a job has changed',
    hint: 'Have fewer wait; one for each job is enough.',
  },
};

/** Bounds the long-lived responses that each user has open, for each takes memory. */
export class ResponseQuota {
  readonly #kind: keyof typeof KINDS;
  readonly #limit: number;
  readonly #open = new Map<string, number>();

  /** `limit` of one user at once; 0: no limit. */
  constructor(kind: keyof typeof KINDS, limit: number) {
    this.#kind = kind;
    this.#limit = limit;
  }

  /** Counts the response for shareOf() until it is closed. Throws `too_many_requests` past the limit. */
  add(share: string, res: Response): void {
    const open = this.#open.get(share) ?? 0;
    if (this.#limit > 0 && open >= this.#limit) {
      const { what, hint } = KINDS[this.#kind];
      throw new WindlassError('too_many_requests', {
        detail: `You have ${this.#limit} ${what}, which is the limit.`,
        hint: `${hint} LIMIT_STREAMS sets the limit.`,
        headers: { 'Retry-After': '10' },
      });
    }
    // The client disconnected before anybody listened for `close`.
    if (res.destroyed) return;
    this.#open.set(share, open + 1);
    res.once('close', () => this.#remove(share));
  }

  #remove(share: string): void {
    const left = (this.#open.get(share) ?? 0) - 1;
    if (left > 0) this.#open.set(share, left);
    else this.#open.delete(share);
  }
}
