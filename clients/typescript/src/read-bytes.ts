import { WindlassError } from './error.ts';
import { BrokenStream, readWithin } from './event-stream.ts';
import { foreignAnswer } from './foreign-answer.ts';
import { type Http, unreachable } from './http.ts';
import type { Bytes } from './lines.ts';

const SILENCE_MS = 60_000;

/** A request for what stands behind so many bytes. */
export type Ask = (at: number) => { path: string; headers?: Record<string, string> };

export interface ReadBytesOptions {
  signal?: AbortSignal;
  /** How long an answer may take to begin. Default 60,000. */
  answerMs?: number;
  /** The state that what was read before had, by the ETag of its answer. */
  tag?: string;
  /** Told, before any byte, the state of what is read, where the service names one, and the number of bytes to come. */
  onBegin?: (begun: { tag: string | undefined; length: number }) => void;
}

/**
 * The bytes of an answer to its end; after a lost connection the rest is requested. Throws `changed` where the rest is
 * of another state, or the number of bytes is wrong.
 */
export async function* readBytes(
  http: Http,
  ask: Ask,
  { signal, answerMs = SILENCE_MS, tag, onBegin }: ReadBytesOptions = {},
): AsyncGenerator<Bytes> {
  const sending = { signal, patience: Infinity, timeoutMs: answerMs };
  let at = 0;
  let total = Infinity;
  let state = tag;
  let isBegun = false;
  for (let attempt = 0; at < total; attempt++) {
    const { path, headers } = ask(at);
    const isChecked = state !== undefined && headers?.Range !== undefined;
    const condition = isChecked ? { 'If-Range': state } : undefined;
    const asked = { headers: { ...headers, ...condition } };
    const response = await http.request(path, asked, sending);
    const present = at + readLength(response);
    const found = response.headers.get('ETag') ?? undefined;
    // All of it, though a part was requested: the state that If-Range names is gone, or a proxy takes no ranges.
    const isWhole = headers?.Range !== undefined && response.status === 200;
    const isLonger = total < Infinity && present !== total;
    if (isWhole || isLonger || (state !== undefined && isChecked && isOther(state, found))) {
      await response.body?.cancel();
      if (!isBegun && !isChecked) throw foreignAnswer(response, 'all of the file, not the part');
      throw changed(path);
    }
    if (!isBegun) onBegin?.({ tag: found, length: present });
    isBegun = true;
    total = present;
    state = found;
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

/** Whether these are tags of two states: after compression by a proxy a tag is the same but weak (RFC 9110, 8.8.3). */
const isOther = (before: string, found: string | undefined) =>
  found?.replace(/^W\//, '') !== before.replace(/^W\//, '');

/** Infinity where it is unknown: the Content-Length of a compressed answer is not that of its bytes. */
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
