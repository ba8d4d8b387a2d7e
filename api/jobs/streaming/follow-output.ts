import { unavailable, WindlassError } from '../../../shared/errors/errors.ts';
import type { JobSummary } from '../../../shared/jobs/job-record.ts';
import { readOutputStream } from '../../../shared/jobs/read-output.ts';
import type { ApiContext } from '../../context.ts';
import { jobError } from '../records/job-error.ts';
import { WRITE_TIMEOUT_MS } from './output-reader.ts';

/**
 * A job's stdout, while it is written. Throws what the job failed with, before the first byte where that is known by then,
 * or the signal's reason.
 */
export async function* followOutput(
  api: ApiContext,
  job: JobSummary,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  let row = job;
  for (let at = 0; ; ) {
    const hasFailed = row.finished && row.state !== 'succeeded';
    if (hasFailed && at === 0) throw errorOf(row);
    const span = { from: at, until: row.stdoutBytes, signal };
    for await (const bytes of readStdout(api, row.id, span)) {
      at += bytes.length;
      yield bytes;
    }
    if (hasFailed) throw errorOf(row);
    if (row.finished) return;
    const next = await api.jobWatch.nextChange(row, signal);
    signal.throwIfAborted();
    if (!next) throw jobRemoved();
    row = next;
  }
}

/**
 * Stored bytes of a job's stdout. Where the client stops reading, the object is closed, because connections to a store are
 * few, and the rest is read again when the client goes on.
 */
export async function* readStdout(
  { database: { db }, objects }: Pick<ApiContext, 'database' | 'objects'>,
  job: string,
  { from, until, signal }: { from: number; until: number; signal: AbortSignal },
): AsyncGenerator<Buffer> {
  for (let at = from, before = -1; before < at && at < until; ) {
    before = at;
    const span = { stream: 'stdout', from: at, until, signal } as const;
    const stored = readOutputStream({ db, objects }, job, span);
    const close = () => void stored.return(undefined).catch(() => {});
    for await (const bytes of stored) {
      at += bytes.length;
      const late = setTimeout(close, WRITE_TIMEOUT_MS).unref();
      yield bytes;
      clearTimeout(late);
    }
  }
}

/** Nobody asked for the end of a job whose worker saw no more signs of its reader: see reader-signs.ts. */
function errorOf(row: JobSummary): WindlassError {
  const wasUnread = row.state === 'cancelled' && row.cancelRequested === null;
  return wasUnread ? stalled() : jobError(row);
}

const stalled = () =>
  unavailable(
    'the service stalled, or was without its database, while it read from the host.',
    'Send the request again.',
    1,
  );

const jobRemoved = () =>
  new WindlassError('not_found', {
    detail: 'the job was removed while its output was read.',
    hint: 'Send the request again.',
  });

/** Splits bytes into lines of text; drops a last one without a line break. */
export async function* splitLines(bytes: AsyncIterable<Buffer>): AsyncGenerator<string[]> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const piece of bytes) {
    const whole = rest.length === 0 ? piece : Buffer.concat([rest, piece]);
    const end = whole.lastIndexOf(0x0a);
    rest = Buffer.from(whole.subarray(end + 1));
    if (end >= 0) yield whole.toString('utf8', 0, end).split('\n');
  }
}
