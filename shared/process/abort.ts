import { setTimeout as delay } from 'node:timers/promises';

/** Settles as the promise does, or rejects with the signal's reason as soon as that is aborted. The work itself goes on. */
export function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    const abort = () => reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}

/** Does what abortable() does for a resource: one that opens after the signal was aborted is closed with `close`. */
export function abortableOpen<T>(
  opening: Promise<T>,
  signal: AbortSignal,
  close: (late: T) => void,
): Promise<T> {
  return abortable(opening, signal).catch((error: unknown) => {
    opening.then(close, () => {});
    throw error;
  });
}

/** Yields the source's values until the signal is aborted; then returns the source and throws the reason. */
export async function* abortableIterator<T>(
  source: AsyncIterableIterator<T>,
  signal: AbortSignal,
): AsyncGenerator<T> {
  // No race with a promise of the signal: it would keep each result, so all output, as long as the signal exists.
  const leave = () => void source.return?.();
  signal.addEventListener('abort', leave, { once: true });
  try {
    for (;;) {
      signal.throwIfAborted();
      const next = await source.next();
      signal.throwIfAborted();
      if (next.done) return;
      yield next.value;
    }
  } finally {
    signal.removeEventListener('abort', leave);
    leave();
  }
}

/** Resolves after `ms`, or as soon as the signal is aborted. */
export async function sleep(signal: AbortSignal | undefined, ms: number): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => {});
}

/**
 * Resolves when one of the signals is aborted; `over` ends the wait, and what it holds. Not AbortSignal.any(): one with a
 * listener is never collected, nor what the listener refers to.
 */
export function whenAborted(signals: AbortSignal[], over: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    for (const signal of signals) {
      if (signal.aborted) resolve();
      signal.addEventListener('abort', () => resolve(), { once: true, signal: over });
    }
  });
}
