import { WindlassError } from './error.ts';
import { BrokenStream, readWithin } from './event-stream.ts';
import { type Http, unreachable } from './http.ts';

const SILENCE_MS = 60_000;

/** A request for what stands behind so many bytes. */
export type Ask = (at: number) => { path: string; headers?: Record<string, string> };

/**
 * The bytes of an answer, to its end: where the connection is lost, the rest is asked for. Throws `changed` where there are
 * more or fewer bytes by then.
 */
export async function* readBytes(
  http: Http,
  ask: Ask,
  { signal }: { signal?: AbortSignal } = {},
): AsyncGenerator<Uint8Array> {
  const sending = { signal, patience: Infinity, timeoutMs: SILENCE_MS };
  let at = 0;
  let total = Infinity;
  for (let attempt = 0; at < total; attempt++) {
    const { path, headers } = ask(at);
    const response = await http.request(path, { headers }, sending);
    const present = at + readLength(response);
    if (total < Infinity && present !== total) throw changed(path);
    total = present;
    const reader = response.body?.getReader();
    try {
      while (reader) {
        const { done, value } = await readWithin(SILENCE_MS, reader);
        if (done) return;
        at += value.length;
        attempt = 0;
        yield value;
      }
      return;
    } catch (error) {
      signal?.throwIfAborted();
      if (!(error instanceof BrokenStream)) throw error;
      await http.pause(attempt, { error: unreachable(http.base, error.cause), signal });
    } finally {
      await reader?.cancel().catch(() => {});
    }
  }
}

/** Infinity where it is not known: what a proxy has compressed has another length than its bytes. */
function readLength({ headers }: Response): number {
  const length = headers.get('Content-Encoding') === null && headers.get('Content-Length');
  return length ? Number(length) : Infinity;
}

const changed = (path: string) =>
  new WindlassError({
    code: 'changed',
    detail: `${path} has changed while it was read.`,
    hint: 'Read it again from its beginning.',
  });
