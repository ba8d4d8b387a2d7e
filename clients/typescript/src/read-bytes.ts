import { BrokenStream, readWithin } from './event-stream.ts';
import { type Http, unreachable } from './http.ts';

const SILENCE_MS = 60_000;

/** A request for what stands behind so many bytes. */
export type Ask = (at: number) => { path: string; headers?: Record<string, string> };

/** The bytes of an answer, to its end: where the connection is lost, the rest is asked for. */
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
    const { headers: head } = response;
    const length = head.get('Content-Encoding') === null && head.get('Content-Length');
    if (length) total = at + Number(length);
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
