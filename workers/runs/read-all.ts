import type { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';

/** Pieces that may be under way in `take` before the source is held back. */
const AT_ONCE = 16;

/**
 * Gives each piece of the source to `take`, in order, until its end; rejects with what `take` rejects with, the source's
 * error, or ERR_STREAM_PREMATURE_CLOSE. As events: an iterator joins what has come meanwhile into one buffer each time,
 * and those of a gigabyte keep the garbage collector busy.
 */
export async function readAll(
  source: Readable,
  take: (bytes: Buffer) => Promise<void>,
): Promise<void> {
  const underWay = new Set<Promise<void>>();
  let failure: { error: unknown } | undefined;
  source.on('data', (bytes: Buffer) => {
    if (failure) return;
    const taken = take(bytes)
      .catch((error: unknown) => {
        failure ??= { error };
        source.destroy();
      })
      .finally(() => {
        underWay.delete(taken);
        if (underWay.size < AT_ONCE) source.resume();
      });
    underWay.add(taken);
    if (underWay.size >= AT_ONCE) source.pause();
  });
  // What fails while the end is awaited is told after it.
  const ended = await finished(source, { writable: false }).then(
    () => undefined,
    (error: unknown) => ({ error }),
  );
  await Promise.all(underWay);
  const wrong = failure ?? ended;
  if (wrong) throw wrong.error;
}
