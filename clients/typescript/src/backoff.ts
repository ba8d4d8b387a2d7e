const FIRST_MS = 250;
const LONGEST_MS = 5_000;
/** Timers of more ms fire at once. */
export const LONGEST_TIMER = 2 ** 31 - 1;

/** How long to wait before a request is sent again, in ms: doubled each time, and spread so that clients do not come together. */
export function backoff(attempt: number): number {
  const full = Math.min(LONGEST_MS, FIRST_MS * 2 ** attempt);
  return full / 2 + (Math.random() * full) / 2;
}

/** What `Retry-After` asks for (RFC 9110, 10.2.3), in ms. */
export function retryAfter({ headers }: Response): number | undefined {
  const given = headers.get('Retry-After');
  if (!given) return undefined;
  const seconds = Number(given);
  const ms = Number.isNaN(seconds) ? Date.parse(given) - Date.now() : seconds * 1_000;
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}

/** Rejects with the signal's reason as soon as it is aborted. */
export function sleep(ms: number, signal?: AbortSignal | null): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(
      () => {
        signal?.removeEventListener('abort', stop);
        resolve();
      },
      Math.min(ms, LONGEST_TIMER),
    );
    signal?.addEventListener('abort', stop, { once: true });
  });
}
