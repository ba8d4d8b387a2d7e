import type { Response } from 'express';

/** Does the work of an answer, and aborts it when the client leaves, also before it began: that is no error. */
export async function whileClientStays(
  res: Response,
  work: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  // `close` is not emitted again.
  if (res.closed || res.destroyed) return;
  const gone = new AbortController();
  res.once('close', () => {
    if (!res.writableFinished) gone.abort();
  });
  await work(gone.signal).catch((error: unknown) => {
    if (!gone.signal.aborted) throw error;
  });
}
