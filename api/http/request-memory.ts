import type { Response } from 'express';
import { WindlassError } from '../../shared/errors/errors.ts';
import { ByteBudget } from '../concurrency/byte-budget.ts';
import { shareOf } from '../identity/current-user.ts';
import { watchReader } from './watch-reader.ts';

/** Fewer bytes are not counted, so that small answers need not wait for slow readers of large ones. */
const SMALL_BYTES = 256 << 10;

/** Memory of this process for large request bodies and answers: a budget per user and one for all. */
export class RequestMemory {
  readonly #budget = new ByteBudget({ perUser: 32 << 20, inAll: 128 << 20, waitMs: 30_000 });
  readonly #identify: (res: Response) => Promise<void>;
  readonly #windowMs: number;

  /**
   * `identify` throws if the sender's credentials were revoked during the wait for memory. In each window a client must take 64
   * KiB of an answer that holds memory.
   */
  constructor(identify: (res: Response) => Promise<void>, windowMs: number) {
    this.#identify = identify;
    this.#windowMs = windowMs;
  }

  /**
   * Reserves memory until the response closes. Call it before reading what the answer is made of. Throws `unavailable` when the
   * budget stays exhausted for 30 s, `bad_request` when the client disconnects meanwhile, `unauthorized`, and as `check` does,
   * which is called last: the user may have left the project meanwhile. Resolves with a function that releases the memory
   * earlier.
   */
  async reserve(res: Response, bytes: number, check?: () => Promise<unknown>): Promise<() => void> {
    const gone = new AbortController();
    const abort = () =>
      gone.abort(new WindlassError('bad_request', { detail: 'The request ended early.' }));
    res.once('close', abort);
    // The response may have closed before this was called; `close` is not emitted again.
    if (res.closed || res.destroyed) abort();
    const giveBack = await this.#budget.reserve(shareOf(res), bytes, gone.signal);
    const unwatch = watchReader(res, this.#windowMs);
    const release = () => {
      unwatch();
      giveBack();
    };
    res.once('close', release);
    if (res.closed || res.destroyed) release();
    await this.#identify(res);
    await check?.();
    return release;
  }

  /** Like reserve(), but reserves nothing for a small size. */
  async reserveIfLarge(
    res: Response,
    bytes: number,
    check?: () => Promise<unknown>,
  ): Promise<(() => void) | undefined> {
    return bytes > SMALL_BYTES ? this.reserve(res, bytes, check) : undefined;
  }
}
