import { and, eq, sql } from 'drizzle-orm';
import type { Response } from 'express';
import { z } from 'zod';
import type { Tx } from '../../shared/database/connect.ts';
import { jobs, views } from '../../shared/database/schema.ts';
import { conflict, type ErrorCode } from '../../shared/errors/errors.ts';
import { newId } from '../../shared/ids.ts';
import { isOpenById } from '../../shared/jobs/job-conditions.ts';
import {
  type JobSummary,
  jobRecord,
  summaryColumns,
  toJobRecord,
} from '../../shared/jobs/job-record.ts';
import type { ApiContext } from '../context.ts';
import type { Exchange } from '../http/exchange.ts';
import { currentUser, shareOf } from '../identity/current-user.ts';
import { jobError } from '../jobs/records/job-error.ts';
import { awaitEnd } from '../jobs/requests/prefer.ts';
import { startRequestedJob } from '../jobs/requests/start-requested-job.ts';
import { answerWithLocation } from '../openapi/operation.ts';
import { findModel, lockProjectForShare, needRole } from '../projects/access.ts';
import type { StoredArtifact } from './find-artifact.ts';
import { type ViewDefinition, viewId } from './table-query.ts';
import type { TableFile } from './thread-protocol.ts';

/** What tells how a view is getting on: its job, of which another user than its owner sees the progress. */
const viewJob = z.union([
  jobRecord,
  jobRecord.pick({ state: true, progress: true }).meta({ id: 'ViewProgress' }),
]);

/** The answer of an operation whose view takes long. */
export const viewPending = answerWithLocation(
  'The view is still being made; ask again.',
  'The job, where it is yours.',
  viewJob,
);

/** Those of an operation on the rows of a view, or of the table. */
export const viewAnswers = <Schema extends z.ZodType>(means: string, json: Schema) => ({
  200: { means, json },
  202: viewPending,
  304: 'Unchanged.',
});

/** What an operation on a view may be refused for. */
export const VIEW_ERRORS = [
  'invalid_input',
  'not_found',
  'payload_too_large',
  'too_many_requests',
  'conflict',
] satisfies ErrorCode[];

/** A view that has been made. */
export interface StoredView extends TableFile {
  rows: number;
}

/** The rows of a table that pass all filters, in this order: the table itself where that is all of them as they are. */
export async function findRows(
  api: ApiContext,
  { req, res, table, sort = [], filter }: RowsRequest,
): Promise<StoredView | undefined> {
  if (sort.length === 0 && filter.length === 0)
    return { key: table.object, size: table.size, rows: table.rows };
  return materializeView(api, { req, res, table, view: { sort, filter } });
}

/**
 * The view of a table, made by a job when it does not exist. Waits for that job as a launch does; sends 202 and returns
 * undefined when it takes longer. Views are shared by all who may read the table.
 */
export async function materializeView(
  api: ApiContext,
  { req, res, table, view }: Omit<ViewRequest, 'id'>,
): Promise<StoredView | undefined> {
  const id = viewId(table.object, view);
  const made = await findMade(api.database.db, id);
  if (made) return made;
  const awaitView = async () => {
    const job = await startOrJoin(api, { req, res, table, view, id });
    const ended = await awaitEnd(api, { req, res, job });
    // The user may have left the project meanwhile.
    await findModel(api.database.db, table.model, needRole(res, 'reader'));
    return ended;
  };
  const isOthersFailure = (job: JobSummary) =>
    job.finished && job.state !== 'succeeded' && job.owner !== currentUser(res).username;
  const first = await awaitView();
  // Another user's cancellation or quota says nothing of this one's.
  const ended = isOthersFailure(first) ? await awaitView() : first;
  if (!ended.finished) return void answerLater(res, ended);
  if (isOthersFailure(ended))
    throw conflict('another user had the view made, and that was ended just now.', 'Ask again.');
  if (ended.state !== 'succeeded') throw jobError(ended);
  const now = await findMade(api.database.db, id);
  if (now) return now;
  throw conflict('the table was replaced or deleted, or its view removed, just now.', 'Ask again.');
}

async function findMade(db: Tx, id: string): Promise<StoredView | undefined> {
  const [row] = await db
    .select({ key: views.object, size: views.size, rows: views.rows, used: views.used })
    .from(views)
    .where(eq(views.id, id));
  if (!row || row.key === null || row.rows === null) return undefined;
  // Written at most once a minute.
  if (Date.now() - row.used.getTime() > 60_000)
    await db
      .update(views)
      .set({ used: sql`now()` })
      .where(and(eq(views.id, id), sql`${views.used} < now() - interval '1 minute'`));
  return { key: row.key, size: row.size, rows: row.rows };
}

/** Thrown to roll back the transaction that would have started another job. */
class Joined extends Error {
  readonly job: JobSummary;
  constructor(job: JobSummary) {
    super('the view is being made already');
    this.job = job;
  }
}

interface TableRequest extends Exchange {
  table: StoredArtifact;
}

interface RowsRequest extends TableRequest, Pick<ViewDefinition, 'filter'> {
  sort?: ViewDefinition['sort'];
}

interface ViewRequest extends TableRequest {
  view: ViewDefinition;
  id: string;
}

/** The upsert locks the row of the view, so that of two concurrent requests the second finds the job of the first. */
async function startOrJoin(
  api: ApiContext,
  { req, res, table, view, id }: ViewRequest,
): Promise<JobSummary> {
  const job = newId();
  try {
    return await startRequestedJob(api, { req, res }, async tx => {
      await lockProjectForShare(tx, table.project, needRole(res, 'reader'));
      const [row] = await tx
        .insert(views)
        .values({ id, source: table.object, job })
        .onConflictDoUpdate({ target: views.id, set: { used: sql`now()` } })
        .returning();
      const under = row && row.job !== job ? await findUnderWay(tx, row) : undefined;
      if (under) throw new Joined(under);
      await tx.update(views).set({ job }).where(eq(views.id, id));
      return {
        kind: 'view',
        label: table.aid,
        id: job,
        project: table.project,
        model: table.model,
        payload: { view: id, source: table.object, ...view },
      };
    });
  } catch (error) {
    if (!(error instanceof Joined)) throw error;
    // LIMIT_OPEN_JOBS limits only those who start a job themselves.
    api.longPollQuota.add(shareOf(res), res);
    return error.job;
  }
}

/** The job that makes the view, or has just made it. Undefined when it was cancelled or failed: another one starts. */
async function findUnderWay(
  tx: Tx,
  { job, object }: { job: string; object: string | null },
): Promise<JobSummary | undefined> {
  const which = object === null ? and(eq(jobs.id, job), isOpenById) : eq(jobs.id, job);
  const [row] = await tx.select(summaryColumns).from(jobs).where(which);
  return row?.cancelRequested && !row.finished ? undefined : row;
}

/** Answers 202: to the job's owner with the job, to others with its state, since a job is visible to its owner only. */
function answerLater(res: Response<z.output<typeof viewJob>>, job: JobSummary): void {
  if (res.headersSent || res.destroyed) return;
  // It is the table's: with it in If-None-Match a client would be answered 304 for ever.
  res.removeHeader('ETag');
  res.status(202).set('Retry-After', '1').set('Cache-Control', 'no-store');
  if (job.owner === currentUser(res).username)
    res.location(`/api/jobs/${job.id}`).json(toJobRecord(job));
  else res.json({ state: job.state, progress: job.progress });
}
