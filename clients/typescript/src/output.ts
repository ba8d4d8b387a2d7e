import { escapeId } from './escape-path.ts';
import type { Http } from './http.ts';
import type { OutputStream } from './lines.ts';
import { readBytes } from './read-bytes.ts';

/** Limit on each stream, as in the answers of POST /remotes/launch. */
const MAX_BYTES = 10 << 20;

/** What a job that has ended has printed, as text: the first 10 MiB, and whether there is more. */
export async function readOutput(
  http: Http,
  { job, stream, signal }: { job: string; stream: OutputStream; signal?: AbortSignal },
): Promise<{ text: string; truncated: boolean }> {
  const path = `/api/jobs/${escapeId(job)}/output?stream=${stream}&offset=`;
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  let text = '';
  let left = MAX_BYTES;
  for await (const bytes of readBytes(http, at => ({ path: `${path}${at}` }), { signal })) {
    text += decoder.decode(bytes.subarray(0, left), { stream: true });
    left -= bytes.length;
    if (left < 0) break;
  }
  return { text: text + decoder.decode(), truncated: left < 0 };
}
