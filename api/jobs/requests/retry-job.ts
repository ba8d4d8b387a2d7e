import { eq } from 'drizzle-orm';
import { jobs } from '../../../shared/database/schema.ts';
import { conflict } from '../../../shared/errors/errors.ts';
import { isJobKind, jobDefinition } from '../../../shared/jobs/catalog.ts';
import type { JobSummary } from '../../../shared/jobs/job-record.ts';
import { SUPPORTED_VERSIONS } from '../../../shared/jobs/payload-versions.ts';
import type { ApiContext } from '../../context.ts';
import type { Exchange } from '../../http/exchange.ts';
import { lockProjectForShare } from '../../projects/access.ts';
import { lockSession } from '../../remote/sessions.ts';
import { parseAgain } from '../../uploads/accept-upload.ts';
import { unknownJob } from '../queries/find-job.ts';
import { type RequestedJob, startRequestedJob } from './start-requested-job.ts';

/** Starts another job like the one of this row, which has ended. Throws `conflict` where that cannot be. */
export function retryJob(
  api: ApiContext,
  { req, res }: Exchange,
  row: JobSummary,
  name: string | undefined,
): Promise<JobSummary> {
  const { kind, owner } = row;
  const idleSeconds = api.config.SESSION_IDLE_TIMEOUT;
  if (!isJobKind(kind) || !jobDefinition(kind).retry)
    throw conflict(`a ${kind} cannot be repeated.`, 'Send the request again that started it.');
  if (!row.finished) throw conflict(`the job is ${row.state}.`, 'Wait for its end, or cancel it.');
  return startRequestedJob(api, { req, res }, async tx => {
    if (jobDefinition(kind).session)
      await lockSession(tx, { sid: row.session ?? '', owner, idleSeconds });
    const project = row.project ?? undefined;
    if (project) await lockProjectForShare(tx, project, { username: owner, role: 'writer' });
    const again = { retryOf: row.id, name: name ?? row.name ?? undefined };
    if (kind === 'parse') {
      const key = { uid: row.upload ?? '', owner };
      return { ...(await parseAgain(tx, key, row.id)), ...again };
    }
    const [same] = await tx
      .select({ payload: jobs.payload, version: jobs.payloadVersion })
      .from(jobs)
      .where(eq(jobs.id, row.id));
    if (!same) throw unknownJob();
    const { success } = jobDefinition(kind).payload.safeParse(same.payload);
    // Members that this release does not know would be left out (decision 32).
    if (!success || same.version > (SUPPORTED_VERSIONS[kind] ?? 0)) throw fromNewerRelease();
    return {
      kind,
      payload: same.payload,
      session: row.session ?? undefined,
      project,
      label: row.label ?? undefined,
      ...again,
    } as RequestedJob;
  });
}

const fromNewerRelease = () =>
  conflict(
    'the job was started by a newer release.',
    'Try again once all of the service is of that release, or send the request again that started the job.',
  );
