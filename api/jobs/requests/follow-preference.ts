import type { Request, Response } from 'express';
import type { ApiContext } from '../../context.ts';
import type { JobSummary } from '../views/job-summary.ts';
import { readPreference, untilNoLongerWaiting } from './run-request.ts';

/**
 * The job when it has ended, or as it is when the answer is due: by `Prefer`, which the answer says to have been applied,
 * after LAUNCH_MAX_WAIT at the latest. A client that leaves cancels nothing; a process that stops waits no longer.
 */
export async function followPreference(
  api: ApiContext,
  { req, res, job }: { req: Request; res: Response; job: JobSummary },
): Promise<JobSummary> {
  const { respondAsync, wait } = readPreference(req);
  if (respondAsync) res.set('Preference-Applied', 'respond-async');
  else if (wait !== undefined) res.set('Preference-Applied', `wait=${wait}`);
  if (respondAsync || wait === 0) return job;
  const max = api.config.LAUNCH_MAX_WAIT;
  const seconds = wait === undefined ? max : max > 0 ? Math.min(wait, max) : wait;
  return api.jobs.ended(job, untilNoLongerWaiting(api, res, seconds).signal);
}
