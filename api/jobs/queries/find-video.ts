import { and, eq, sql } from 'drizzle-orm';
import { prepareOnce } from '../../../shared/database/prepare-once.ts';
import { jobs, sessions } from '../../../shared/database/schema.ts';
import { notFound, WindlassError } from '../../../shared/errors/errors.ts';
import { isId } from '../../../shared/ids.ts';
import { type JobSummary, summaryColumns } from '../../../shared/jobs/job-record.ts';
import type { ApiContext } from '../../context.ts';
import type { Exchange } from '../../http/exchange.ts';
import { pathParameter } from '../../http/resource.ts';
import {
  explainNoSession,
  isOwnActiveSession,
  sessionKey,
  sessionPlaceholders,
  touchSession,
} from '../../remote/sessions.ts';

/** The video of this session, which counts as used. */
export async function findVideo(api: ApiContext, { req, res }: Exchange): Promise<JobSummary> {
  const { db } = api.database;
  const key = sessionKey(api, res, pathParameter(req, 'sid'));
  const [found] = isId(key.sid)
    ? await selectVideo(db).execute({ ...key, vsid: pathParameter(req, 'vsid') })
    : [];
  if (!found) throw await explainNoSession(db, key);
  requireAgent(found.session);
  await touchSession(api, found.session);
  if (!found.video)
    throw notFound(
      'this session has no such video.',
      'Start one with POST /api/remotes/(sid)/videos.',
    );
  return found.video;
}

const selectVideo = prepareOnce(db =>
  db
    .select({
      session: { sid: sessions.sid, agent: sessions.agent, accessed: sessions.accessed },
      video: summaryColumns,
    })
    .from(sessions)
    .leftJoin(
      jobs,
      and(
        eq(jobs.id, sql.placeholder('vsid')),
        eq(jobs.session, sessions.sid),
        eq(jobs.kind, 'video'),
      ),
    )
    .where(isOwnActiveSession(db, sessionPlaceholders))
    .prepare('find_video'),
);

export function requireAgent({ agent }: { agent: boolean }): void {
  if (agent) return;
  throw new WindlassError('agent_required', {
    detail: 'Agent required. This session is not running a remote agent.',
    hint: 'Open a session with "agent": true on a host that is set up for one.',
  });
}
