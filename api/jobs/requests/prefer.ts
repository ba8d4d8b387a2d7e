import type { Request } from 'express';
import type { JobSummary } from '../../../shared/jobs/job-record.ts';
import type { ApiContext } from '../../context.ts';
import { matchesEntityTag } from '../../http/conditional-requests.ts';
import type { Exchange } from '../../http/exchange.ts';
import { shareOf } from '../../identity/current-user.ts';
import { identifyAfterWait } from '../../identity/identify-sender.ts';
import { identifyAfterEnd } from './identify-after-end.ts';
import { limitWait } from './limit-wait.ts';

/** The most seconds that a poll waits: RFC 7240, 2 leaves it to the server how far it follows a preference. */
const MAX_POLL_SECONDS = 300;

/**
 * The job when it has ended, or as it is when the answer is due: by `Prefer`, and by LAUNCH_MAX_WAIT at the latest. A
 * client that disconnects cancels nothing. Throws `unauthorized` where the sender's credentials were revoked meanwhile.
 */
export async function awaitEnd(
  api: ApiContext,
  { req, res, job }: Exchange & { job: JobSummary },
): Promise<JobSummary> {
  const { respondAsync, wait } = readPreference(req);
  if (respondAsync) res.set('Preference-Applied', 'respond-async');
  else if (wait !== undefined) res.set('Preference-Applied', `wait=${wait}`);
  if (respondAsync || wait === 0) return job;
  const max = api.config.LAUNCH_MAX_WAIT;
  const seconds = wait === undefined ? max : max > 0 ? Math.min(wait, max) : wait;
  const ended = await api.jobWatch.untilEnded(job, limitWait(api, res, seconds).signal);
  return (await identifyAfterEnd(api, { req, res })) ? ended : job;
}

/**
 * The row that answers GET of a job's state. `Prefer: wait=N` (RFC 7240) waits for N seconds at most until the row
 * differs from If-None-Match, else from `row`, whose tag is `tag`. Throws `too_many_requests` for too many long polls,
 * and `unauthorized` as awaitEnd() does.
 */
export async function awaitChange(
  api: ApiContext,
  { req, res, row, tag }: Exchange & { row: JobSummary; tag: string },
): Promise<JobSummary> {
  const { wait: wanted } = readPreference(req);
  if (!wanted || row.finished) return row;
  const wait = Math.min(wanted, MAX_POLL_SECONDS);
  const known = req.get('If-None-Match');
  // The client has an older state, or none of this job.
  const isNew = known !== undefined && !matchesEntityTag(known, tag);
  if (!isNew) api.longPollQuota.add(shareOf(res), res);
  res.set('Preference-Applied', `wait=${wait}`);
  if (isNew) return row;
  const changed = await api.jobWatch.nextChange(row, limitWait(api, res, wait).signal);
  await identifyAfterWait(api, { req, res });
  return changed ?? row;
}

/** RFC 7240: `respond-async` and `wait=N`; other preferences are ignored. */
function readPreference(req: Request): { respondAsync: boolean; wait: number | undefined } {
  const preferences = (req.get('Prefer') ?? '')
    .toLowerCase()
    .split(/[,;]/)
    .map(text => text.trim());
  const wait = preferences.map(text => /^wait="?(\d{1,9})"?$/.exec(text)?.[1]).find(Boolean);
  return {
    respondAsync: preferences.includes('respond-async'),
    wait: wait === undefined ? undefined : Number(wait),
  };
}
