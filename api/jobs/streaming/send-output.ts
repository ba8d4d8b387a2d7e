import type { Response } from 'express';
import type { OutputStream } from '../../../shared/jobs/output.ts';
import { waitForDrain } from '../../http/wait-for-drain.ts';
import type { JobSummary } from '../views/job-summary.ts';
import { DRAIN_MS, type OutputReader } from './output-reader.ts';

/** So much at most is held for a client that does not take it: there may be many. */
const SLICE = 64 << 10;

/**
 * Sends these bytes of a stream, all of which are stored: exactly so many, as more may be stored meanwhile. A client that
 * stops taking them holds one slice; the rest is read anew when it goes on.
 */
export async function sendOutput(
  reads: OutputReader,
  res: Response,
  {
    job,
    stream,
    from,
    until,
  }: { job: JobSummary; stream: OutputStream; from: number; until: number },
): Promise<void> {
  let at = from;
  const take = async (bytes: Buffer): Promise<boolean> => {
    for (let start = 0; start < bytes.length && at < until; ) {
      const length = Math.min(SLICE, bytes.length - start, until - at);
      // A copy: what waits to be sent would keep all that it was read with.
      const slice = Buffer.from(bytes.subarray(start, start + length));
      start += length;
      at += length;
      if (!res.write(slice) && !(await waitForDrain(res, DRAIN_MS))) return false;
    }
    return at < until;
  };
  const taker = {
    take,
    get gone() {
      return res.destroyed;
    },
  };
  while (at < until) {
    const isRead = await reads.readBytes(job, { stream, from: at, until }, taker);
    if (res.destroyed) return;
    // Fewer than announced: the answer must not look whole.
    if (isRead && at < until) return void res.destroy();
    if (res.writableNeedDrain && !(await waitForDrain(res))) return;
  }
  res.end();
}
