import type { Request, Response } from 'express';
import type { ApiContext } from '../../context.ts';
import { entityTag, matchesEntityTag } from '../../http/conditional-requests.ts';
import { currentUser } from '../../identity/current-user.ts';
import type { JobSummary } from '../views/job-summary.ts';
import { readPreference, untilNoLongerWaiting } from './run-request.ts';

/** So long at most, in seconds, a poll is held: RFC 7240, 2 leaves it to the server how far it follows a preference. */
const LONGEST_WAIT = 300;

/**
 * The row to answer GET of a job's state with. With `Prefer: wait=N` (RFC 7240, 4.3) it is held, for at most N seconds
 * and LONGEST_WAIT, until it differs from what If-None-Match names, or without one from `row`, the state at arrival. What
 * has ended is not waited for. Throws `too_many_requests` where the user has too many held.
 */
export async function awaitChange(
  api: ApiContext,
  { req, res, row }: { req: Request; res: Response; row: JobSummary },
): Promise<JobSummary> {
  const { wait: wanted } = readPreference(req);
  if (!wanted || row.finished) return row;
  const wait = Math.min(wanted, LONGEST_WAIT);
  const known = req.get('If-None-Match');
  // The client has seen an older state, or none of this job: there is news already.
  const isNews = known !== undefined && !matchesEntityTag(known, entityTag(row.version));
  if (!isNews) api.held.add(currentUser(res).username, res);
  res.set('Preference-Applied', `wait=${wait}`);
  if (isNews) return row;
  const { signal } = untilNoLongerWaiting(api, res, wait);
  return (await api.jobs.changed(row.id, row.version, signal)) ?? row;
}
