import { isDatabaseDown, isDeadlock } from '../../shared/database/connect.ts';
import { WindlassError } from '../../shared/errors/errors.ts';
import { sleep } from '../../shared/process/abort.ts';

interface RetryOptions {
  /** Whether the same step may succeed later. Other errors are thrown at once. */
  isTransient(error: unknown): boolean;
  everyMs: number;
  /** No retry begins later than this after the first try. Default: without end. */
  forMs?: number;
  /** Ends the retries. Its reason is thrown, or the step's error if that comes after the abort. */
  signal?: AbortSignal;
  /** Called before each pause. */
  onWait?: () => void;
}

/** The database is unreachable, or aborted the step to break a deadlock. A worker that holds results waits this long. */
export const DATABASE: RetryOptions = {
  isTransient: error => isDatabaseDown(error) || isDeadlock(error),
  everyMs: 250,
  forMs: 120_000,
};

/** The object store is unreachable: what took hours to make must not be made again. */
export const OBJECT_STORE: RetryOptions = { isTransient: isUnavailable, everyMs: 1_000 };

/** Repeats a step after transient errors. `tries` tells the step that an earlier try may have been committed. */
export async function retry<T>(
  step: (tries: number) => Promise<T>,
  { isTransient, everyMs, forMs = Number.POSITIVE_INFINITY, signal, onWait }: RetryOptions,
): Promise<T> {
  const until = performance.now() + forMs;
  for (let tries = 0; ; tries++) {
    try {
      return await step(tries);
    } catch (error) {
      if (!isTransient(error) || signal?.aborted || performance.now() > until) throw error;
    }
    onWait?.();
    await sleep(signal, everyMs);
    signal?.throwIfAborted();
  }
}

export function isUnavailable(error: unknown): error is WindlassError {
  return error instanceof WindlassError && error.code === 'unavailable';
}
