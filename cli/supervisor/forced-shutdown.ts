import type { EventEmitter } from 'node:events';

/** One Ctrl-C can arrive twice: from the terminal and from npm, which forwards it. */
const SAME_REQUEST_MS = 500;

/** Aborts on a SIGINT or SIGTERM after `signal` was aborted: a second request to stop does not wait. */
export function listenForForcedShutdown(
  signal: AbortSignal,
  source: EventEmitter = process,
): AbortSignal {
  const forceShutdown = new AbortController();
  const listen = () => {
    const since = performance.now();
    for (const name of ['SIGINT', 'SIGTERM']) {
      source.on(name, () => {
        if (performance.now() - since > SAME_REQUEST_MS) forceShutdown.abort();
      });
    }
  };
  if (signal.aborted) listen();
  else signal.addEventListener('abort', listen, { once: true });
  return forceShutdown.signal;
}
