import type { EventEmitter } from 'node:events';

/** One Ctrl-C can arrive twice: from the terminal, and passed on by npm. */
const SAME_REQUEST_MS = 500;

/** Aborted by a SIGINT or SIGTERM that follows the abort of `signal`: the person will not wait. */
export function listenForForceQuit(
  signal: AbortSignal,
  source: EventEmitter = process,
): AbortSignal {
  const forceQuit = new AbortController();
  const listen = () => {
    const since = performance.now();
    for (const name of ['SIGINT', 'SIGTERM']) {
      source.on(name, () => {
        if (performance.now() - since > SAME_REQUEST_MS) forceQuit.abort();
      });
    }
  };
  if (signal.aborted) listen();
  else signal.addEventListener('abort', listen, { once: true });
  return forceQuit.signal;
}
