import { unwrap } from './api.ts';
import { backoff, sleep } from './backoff.ts';
import type { Connection } from './connection.ts';
import { WindlassError } from './error.ts';
import { escapeId } from './escape-path.ts';
import { requireJson } from './foreign-answer.ts';
import { ANSWER_MS } from './http.ts';
import type { components } from './schema.ts';

/** A job as its owner sees it. */
export type Job = components['schemas']['Job'];

export interface WaitOptions {
  /** Ends the waiting, with the signal's reason as error. The job goes on. */
  signal?: AbortSignal | undefined;
  /** Told of each change of the job, and of how it is at first. */
  onChange?: ((job: Job) => void) | undefined;
}

const POLL_SECONDS = 25;
/** An answer that comes sooner was not held. */
const HELD_MS = 1_000;

const pathOf = (id: string) => `/api/jobs/${escapeId(id)}`;

/** The job when it has ended, in whatever state and however long that takes; times without the service are bridged. */
export async function waitForEnd(
  { http }: Connection,
  id: string,
  { signal, onChange }: WaitOptions = {},
): Promise<Job> {
  const sending = { signal, patience: Infinity, timeoutMs: (POLL_SECONDS + 15) * 1_000 };
  let tag = '';
  let known: string | undefined;
  let unheld = 0;
  for (;;) {
    // Without a tag the service would wait for a change of what we have not seen.
    const headers: Record<string, string> = tag
      ? { 'If-None-Match': tag, Prefer: `wait=${POLL_SECONDS}` }
      : {};
    const begun = performance.now();
    const response = await http.request(pathOf(id), { headers }, sending);
    let isNew = false;
    if (response.status !== 304) {
      const text = await (await requireJson(response)).text();
      tag = response.headers.get('ETag') ?? '';
      isNew = text !== known;
      known = text;
    }
    if (isNew) {
      const job = JSON.parse(known as string) as Job;
      onChange?.(job);
      if (job.finished !== null) return job;
    }
    // With a proxy that removes or changes tags or preferences every request is answered at once.
    if (isNew || performance.now() - begun > HELD_MS) unheld = 0;
    else await sleep(backoff(unheld++), signal);
  }
}

/** Asks for a job's end; false where it had ended before. */
export async function cancelJob(
  { api }: Connection,
  id: string,
  { signal }: { signal?: AbortSignal | undefined } = {},
): Promise<boolean> {
  try {
    const params = { path: { id } };
    // A second request finds at most that the first has ended it.
    const sending = { signal, timeoutMs: ANSWER_MS, isRepeatable: true };
    await unwrap(api.DELETE('/api/jobs/{id}', { params, ...sending }));
    return true;
  } catch (error) {
    if (error instanceof WindlassError && error.code === 'conflict') return false;
    throw error;
  }
}

/** The error of a job that failed or was cancelled. */
export function errorOfJob({ id, state, error }: Job): WindlassError {
  const problem = error ?? { code: state, detail: `The job is ${state}.` };
  return new WindlassError(problem, { job: id });
}
