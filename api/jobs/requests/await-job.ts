import type { Response } from 'express';
import { unavailable } from '../../../shared/errors/errors.ts';
import { cancelJob, publishCancelled } from '../../../shared/jobs/cancel.ts';
import type { JobSummary } from '../../../shared/jobs/job-record.ts';
import type { ApiContext } from '../../context.ts';
import { identifyAfterWait } from '../../identity/identify-sender.ts';
import { jobError } from '../records/job-error.ts';
import { identifyAfterEnd } from './identify-after-end.ts';
import { limitWait } from './limit-wait.ts';
import type { StartedJob } from './start-requested-job.ts';

/**
 * Starts a job of an AwaitedKind and waits for it. Throws the job's error. Undefined where the client has disconnected.
 * Throws `unauthorized` where the sender's credentials were revoked meanwhile: what the job has done stays.
 */
export async function awaitJob(
  api: ApiContext,
  res: Response,
  start: () => Promise<StartedJob>,
): Promise<JobSummary | undefined> {
  let job = await start();
  let ended = await untilEnded(api, res, job);
  // Where the client of the request that started it disconnected, this one waits, and begins anew; perhaps by joining the
  // job of another repeat.
  while (job.isRepeat && ended?.state === 'cancelled') {
    // Nothing is begun for a sender of whom nobody can tell.
    await identifyAfterWait(api, { req: res.req, res });
    const next = await start();
    // Its user cancelled it.
    if (next.id === job.id) break;
    job = next;
    ended = await untilEnded(api, res, job);
  }
  if (ended && ended.state !== 'succeeded') throw jobError(ended);
  return ended;
}

async function untilEnded(
  api: ApiContext,
  res: Response,
  job: StartedJob,
): Promise<JobSummary | undefined> {
  const ended = await whileClientWaits(api, { res, job }, async signal => {
    const row = await api.jobWatch.untilEnded(job, signal);
    if (row.finished) return row;
    throw signal.reason ?? serviceStopping();
  });
  if (ended) await identifyAfterEnd(api, { req: res.req, res });
  return ended;
}

/**
 * Does a request's work with the job that it started or joined. Where that fails, for example because the client
 * disconnects, which is no error, it cancels what it started.
 */
export async function whileClientWaits<T>(
  api: ApiContext,
  { res, job }: { res: Response; job: StartedJob },
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T | undefined> {
  const { signal, isDisconnected } = limitWait(api, res);
  try {
    return await work(signal);
  } catch (error) {
    await giveUp(api, job);
    if (isDisconnected()) return undefined;
    throw signal.aborted && !res.headersSent ? serviceStopping() : error;
  }
}

/** Cancels a job whose output nobody reads, unless another request began it. */
export async function giveUp(api: ApiContext, job: StartedJob): Promise<void> {
  if (job.isRepeat) return;
  publishCancelled(api, await cancelJob(api.database.db, job.id, { byUser: false }));
}

const serviceStopping = () => unavailable('the service is stopping.', 'Try again.', 2);
