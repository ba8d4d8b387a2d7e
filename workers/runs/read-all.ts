import type { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';

/** Calls of `take` that may be pending before the source is paused. */
const MAX_PENDING = 16;

/**
 * Calls `take` with each piece of the source, in order, until its end. Rejects with what `take` rejects with, the source's
 * error, or ERR_STREAM_PREMATURE_CLOSE. Reads events: an iterator would join what has come meanwhile into one buffer each time,
 * and those of a gigabyte keep the garbage collector busy.
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
