import type { Response } from 'express';
import type { JobSummary } from '../../../shared/jobs/job-record.ts';
import type { OutputStream } from '../../../shared/jobs/output.ts';
import { waitForDrain } from '../../../shared/process/wait-for-drain.ts';
import { type OutputReader, WRITE_TIMEOUT_MS } from './output-reader.ts';

/** The most bytes buffered for a client that does not read: there may be many. */
const SLICE = 64 << 10;

/**
 * Sends exactly these bytes of a stream, all of which are stored. For a client that stops reading one slice is buffered;
 * the rest is read again when it goes on.
 */
export async function sendOutput(
  reads: OutputReader,
  res: Response,
  given: { job: JobSummary; stream: OutputStream; from: number; until: number },
): Promise<void> {
  const { job, stream, from, until } = given;
  let at = from;
  const write = async (bytes: Buffer): Promise<boolean> => {
    for (let start = 0; start < bytes.length && at < until; ) {
      const length = Math.min(SLICE, bytes.length - start, until - at);
      // A copy: a view would keep the whole batch in memory while it waits to be sent.
      const slice = Buffer.from(bytes.subarray(start, start + length));
      start += length;
      at += length;
      if (!res.write(slice) && !(await waitForDrain(res, WRITE_TIMEOUT_MS))) return false;
    }
    return at < until;
  };
  const sink = {
    write,
    get closed() {
      return res.destroyed;
    },
  };
  while (at < until) {
    const isComplete = await reads.readBytes(job, { stream, from: at, until }, sink);
    if (res.destroyed) return;
    // Fewer bytes than Content-Length says: the response must not look complete.
    if (isComplete && at < until) return void res.destroy();
    if (res.writableNeedDrain && !(await waitForDrain(res))) return;
  }
  res.end();
}
