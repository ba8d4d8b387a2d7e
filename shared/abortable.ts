/** What the promise gives, or the signal's reason as soon as that is aborted; what is under way goes on unheard. */
export function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    const abort = () => reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}

/** As abortable(), for what must be closed: where it is open after all, `close` is called with it. */
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
