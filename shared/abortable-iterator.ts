/** Passes events on until the signal is aborted; then leaves the source and throws the reason. */
export async function* abortableIterator<T>(
  source: AsyncIterableIterator<T>,
  signal: AbortSignal,
): AsyncGenerator<T> {
  // No race with a promise of the signal's: each would keep its result, so all output, until the signal goes.
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
