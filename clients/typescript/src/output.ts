import { BrokenStream, readWithin } from './event-stream.ts';
import { type Http, unreachable } from './http.ts';
import type { OutputStream } from './lines.ts';

/** Of each stream, as POST /remotes/launch gives. */
const MOST_BYTES = 10 << 20;
const SILENCE_MS = 60_000;

/** What a job that has ended has printed, as text: the first 10 MiB, and whether that is all. */
export async function readOutput(
  http: Http,
  { job, stream, signal }: { job: string; stream: OutputStream; signal?: AbortSignal },
): Promise<{ text: string; truncated: boolean }> {
  const sending = { signal, patience: Infinity, timeoutMs: SILENCE_MS };
  const pieces: Uint8Array[] = [];
  let length = 0;
  const path = `/api/jobs/${encodeURIComponent(job)}/output?stream=${stream}&offset=`;
  for (let attempt = 0; ; attempt++) {
    const response = await http.request(`${path}${length}`, {}, sending);
    const reader = response.body?.getReader();
    try {
      while (reader && length < MOST_BYTES) {
        const { done, value } = await readWithin(SILENCE_MS, reader);
        if (done) break;
        pieces.push(value);
        length += value.length;
        attempt = 0;
      }
      const text = decode(pieces, Math.min(length, MOST_BYTES));
      return { text, truncated: length > MOST_BYTES };
    } catch (error) {
      signal?.throwIfAborted();
      if (!(error instanceof BrokenStream)) throw error;
      await http.pause(attempt, { error: unreachable(http.base, error.cause), signal });
    } finally {
      await reader?.cancel().catch(() => {});
    }
  }
}

function decode(pieces: Uint8Array[], length: number): string {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  let left = length;
  const texts = pieces.map(piece => {
    const part = piece.subarray(0, left);
    left -= part.length;
    return decoder.decode(part, { stream: true });
  });
  return texts.join('') + decoder.decode();
}
