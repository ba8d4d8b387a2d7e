import type { Request, Response } from 'express';
import type { ApiContext } from '../context.ts';
import { entityTag, isNamedBy } from '../http/records.ts';
import type { JobSummary } from './job-summary.ts';
import { readPreference, untilNoLongerWaiting } from './run-request.ts';

/**
 * The row to answer GET of a job's state with. With `Prefer: wait=N` (RFC 7240, 4.3) it is held, for at most N seconds,
 * until it differs from what If-None-Match names, or without one from `row`, the state at arrival. What has ended is not
 * waited for.
 */
export async function awaitChange(
  api: ApiContext,
  { req, res, row }: { req: Request; res: Response; row: JobSummary },
): Promise<JobSummary> {
  const { wait } = readPreference(req);
  if (!wait || row.finished) return row;
  res.set('Preference-Applied', `wait=${wait}`);
  const known = req.get('If-None-Match');
  // The client has seen an older state, or none of this job: there is news already.
  if (known !== undefined && !isNamedBy(known, entityTag(row.version))) return row;
  const { signal } = untilNoLongerWaiting(api, res, wait);
  return (await api.jobs.changed(row.id, row.version, signal)) ?? row;
}
