import { WindlassError } from '../../shared/errors.ts';
import { sleep } from '../../shared/sleep.ts';

const RETRY_MS = 1_000;

/**
 * Repeats what failed because the object store was away, until it is back or the attempt is over: what took hours to make
 * must not be made again. `onWait` is called before each pause.
 */
export async function retryStore<T>(
  step: () => Promise<T>,
  { over, onWait }: { over: AbortSignal; onWait?: () => void },
): Promise<T> {
  for (;;) {
    try {
      return await step();
    } catch (error) {
      if (!isStoreAway(error) || over.aborted) throw error;
    }
    onWait?.();
    await sleep(over, RETRY_MS);
    over.throwIfAborted();
  }
}

export function isStoreAway(error: unknown): error is WindlassError {
  return error instanceof WindlassError && error.code === 'unavailable';
}
