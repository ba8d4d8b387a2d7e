import type { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';

/** Calls of `take` that may be pending before the source is paused. */
const MAX_PENDING = 16;

/**
 * Calls `take` with each piece of the source, in order. Rejects with the error of `take` or of the source, or with
 * ERR_STREAM_PREMATURE_CLOSE. Uses events: an iterator joins waiting pieces into new buffers, which for a gigabyte
 * keeps the garbage collector busy.
 */
export async function readAll(
  source: Readable,
  take: (bytes: Buffer) => Promise<void>,
): Promise<void> {
  const pending = new Set<Promise<void>>();
  let failure: { error: unknown } | undefined;
  source.on('data', (bytes: Buffer) => {
    if (failure) return;
    const taken = take(bytes)
      .catch((error: unknown) => {
        failure ??= { error };
        source.destroy();
      })
      .finally(() => {
        pending.delete(taken);
        if (pending.size < MAX_PENDING) source.resume();
      });
    pending.add(taken);
    if (pending.size >= MAX_PENDING) source.pause();
  });
  // Awaited before the pending calls, whose failure ends the source.
  const ended = await finished(source, { writable: false }).then(
    () => undefined,
    (error: unknown) => ({ error }),
  );
  await Promise.all(pending);
  const wrong = failure ?? ended;
  if (wrong) throw wrong.error;
}
