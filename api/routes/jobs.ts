import { eq } from 'drizzle-orm';
import type { Response } from 'express';
import { z } from 'zod';
import type { Tx } from '../../shared/database/connect.ts';
import { jobs } from '../../shared/database/schema.ts';
import { conflict, forbidden, WindlassError } from '../../shared/errors/errors.ts';
import { cancelJob, publishCancelled } from '../../shared/jobs/cancel.ts';
import { JOB_KINDS, jobDefinition } from '../../shared/jobs/catalog.ts';
import { type JobSummary, jobRecord, toJobRecord } from '../../shared/jobs/job-record.ts';
import { removeJobs } from '../../shared/jobs/remove-jobs.ts';
import { downloadQuery } from '../http/attachment.ts';
import { checkIfMatch, sendRecord } from '../http/conditional-requests.ts';
import type { Exchange } from '../http/exchange.ts';
import { pageOf } from '../http/pagination.ts';
import { pathParameter, resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { sendVideo } from '../http/send-object.ts';
import { invalidInput } from '../http/validate.ts';
import { auditOf } from '../identity/audit.ts';
import { currentUser } from '../identity/current-user.ts';
import { lockAdministrator } from '../identity/lock-user.ts';
import type { User } from '../identity/user.ts';
import { findJobForOperation, findOwnJob, unknownJob } from '../jobs/queries/find-job.ts';
import { type JobsQuery, jobsQuery, listJobs } from '../jobs/queries/list-jobs.ts';
import { foreignRecord, toForeignRecord } from '../jobs/records/foreign-job.ts';
import { jobTag } from '../jobs/records/job-tag.ts';
import { jobName } from '../jobs/requests/job-name.ts';
import { awaitChange } from '../jobs/requests/prefer.ts';
import { retryJob } from '../jobs/requests/retry-job.ts';
import { answerWithId, answerWithLocation, operation, videoAnswers } from '../openapi/operation.ts';

/** Jobs: their states and results. Only its owner sees a job. */
export default routes('json-body', (router, api) => {
  const { db } = api.database;
  const find = ({ req, res }: Exchange) =>
    findOwnJob(db, pathParameter(req, 'id'), currentUser(res));
  const findForOperation = ({ req, res }: Exchange) =>
    findJobForOperation(db, pathParameter(req, 'id'), currentUser(res));

  resource(router, '/jobs', {
    get: operation({
      id: 'listJobs',
      topic: 'jobs',
      summary: 'List your jobs, the latest first',
      details: `A page looks through 10,000 jobs at most: where few match, or many are large, it is shorter than \`limit\`, and \`next\` goes on. What a job of each kind does: ${JOB_KINDS.map(kind => `${kind}: ${jobDefinition(kind).means}`).join(' ')}`,
      query: jobsQuery,
      answers: {
        200: {
          means: 'A page of jobs.',
          json: pageOf('JobPage', z.union([jobRecord, foreignRecord])),
        },
      },
      errors: ['forbidden'],
      handle: async ({ res, query }) => {
        const user = currentUser(res);
        const wanted = query();
        const page = await listJobs(db, {
          owner: chooseOwner(user, wanted) ?? undefined,
          query: wanted,
          reserve: async bytes => {
            await api.requestMemory.reserveIfLarge(res, bytes);
            // An administrator may have become a user meanwhile.
            chooseOwner(currentUser(res), wanted);
          },
        });
        res.json({ ...page, items: page.items.map(row => viewFor(user, row)) });
      },
    }),
  });

  resource(router, '/jobs/:id', {
    get: operation({
      id: 'getJob',
      topic: 'jobs',
      summary: 'Look at a job, or wait until it has changed',
      headers: ['If-None-Match', 'Prefer'],
      answers: {
        200: { means: 'The job.', json: z.union([jobRecord, foreignRecord]) },
        304: 'Unchanged.',
      },
      errors: ['not_found'],
      handle: async ({ req, res }) => {
        const found = await findForOperation({ req, res });
        const before = currentUser(res);
        const known = tagFor(before, found);
        const changed = await awaitChange(api, { req, res, row: found, tag: known });
        const user = currentUser(res);
        // Identified again: an administrator may have become a user meanwhile.
        const isSame = changed === found && user === before;
        const row = isSame ? found : await findForOperation({ req, res });
        const record = () => viewFor(user, row);
        sendRecord({ req, res }, { tag: tagFor(user, row), record });
      },
    }),
    delete: operation({
      id: 'cancelJob',
      topic: 'jobs',
      summary: 'Cancel a job',
      headers: ['If-Match'],
      answers: { 202: answerWithId('Its end is asked for.', 'The job.') },
      errors: ['not_found', 'conflict'],
      handle: async ({ req, res }) => {
        const row = await findForOperation({ req, res });
        const cancelled = await db.transaction(async tx => {
          await lockRights(tx, res, row);
          const { cancelRequested } = await lockUnchanged(tx, { req, res, id: row.id });
          const jobs = await cancelJob(tx, row.id, { byUser: true });
          if (jobs.length > 0 && !cancelRequested)
            await auditOf({ req, res })(tx, 'job.cancel', row.id);
          return jobs;
        });
        if (cancelled.length === 0) {
          // The job may have ended since it was read.
          const { state } = await findForOperation({ req, res });
          throw conflict(
            `the job has ended: ${state}.`,
            `DELETE /api/jobs/${row.id}/record removes its record.`,
          );
        }
        publishCancelled(api, cancelled);
        res.status(202).location(`/api/jobs/${row.id}`).json({ id: row.id });
      },
    }),
  });

  resource(router, '/jobs/:id/record', {
    delete: operation({
      id: 'removeJob',
      topic: 'jobs',
      summary: 'Remove a job that has ended, with its output',
      details:
        'What it made for a project stays: artifacts and how they were parsed, and videos in a cache. A job that nobody removes goes by itself after JOB_RETENTION_DAYS.',
      headers: ['If-Match'],
      answers: { 204: 'Removed; its bytes are deleted soon.' },
      errors: ['not_found', 'conflict'],
      handle: async ({ req, res }) => {
        const row = await findForOperation({ req, res });
        if (!row.finished)
          throw conflict(
            `the job is ${row.state}.`,
            `Wait for its end, or cancel it with DELETE /api/jobs/${row.id}.`,
          );
        await db.transaction(async tx => {
          await lockRights(tx, res, row);
          const lock = () => lockUnchanged(tx, { req, res, id: row.id });
          const removed = await removeJobs(tx, [row.id], lock);
          if (removed.length === 0) throw leftOnHost();
          if (row.owner !== currentUser(res).username)
            await auditOf({ req, res })(tx, 'job.remove', row.id);
        });
        api.notifications.publish('job', row.id);
        res.status(204).end();
      },
    }),
  });

  resource(router, '/jobs/:id/result', {
    get: operation({
      id: 'fetchJobResult',
      topic: 'jobs',
      summary: 'Fetch the result of a job in bytes, such as a video',
      query: z.object(downloadQuery),
      headers: ['If-Match', 'If-None-Match', 'If-Range', 'Range'],
      answers: videoAnswers('All of it.', 'The range.'),
      errors: ['not_found', 'conflict', 'precondition_failed', 'range_not_satisfiable'],
      handle: async ({ req, res, query }) => {
        const { download } = query();
        const row = await find({ req, res });
        const { object, type } = (row.result ?? {}) as { object?: string; type?: string };
        if (!row.finished)
          throw new WindlassError('conflict', {
            detail: `the job is ${row.state}.`,
            hint: 'Wait for its end.',
            headers: { 'Retry-After': '1' },
          });
        if (!object || !type)
          throw new WindlassError('not_found', {
            detail: 'this job has no result in bytes.',
            hint: 'GET /api/jobs/(id) shows its `result`, or its `error`. Only a video that has succeeded has bytes.',
          });
        await sendVideo(api, { req, res }, { key: object, type, download });
      },
    }),
  });

  resource(router, '/jobs/:id/retry', {
    post: operation({
      id: 'retryJob',
      topic: 'jobs',
      summary: 'Do a job once more',
      details:
        'A command, batch job or video, while its session is open; a parse that did not succeed, while the parts of its upload are kept: the upload is then parsed by the new job.',
      body: repetition,
      isBodyOptional: true,
      headers: ['Idempotency-Key'],
      answers: {
        202: answerWithLocation('A new job, linked to the old one.', 'The new job.', jobRecord),
      },
      errors: [
        'not_found',
        'session_not_found',
        'host_changed',
        'conflict',
        'idempotency_conflict',
      ],
      handle: async ({ req, res, body }) => {
        const { name = undefined } = body();
        const row = await find({ req, res });
        const job = await retryJob(api, { req, res }, row, name);
        res.status(202).location(`/api/jobs/${job.id}`).json(toJobRecord(job));
      },
    }),
  });
});

/**
 * Tags differ because an administrator sees another record of others' jobs, and a browser keeps answers from one login to the
 * next.
 */
const tagFor = ({ username }: User, row: Pick<JobSummary, 'owner' | 'version' | 'state'>) =>
  jobTag(row, row.owner === username ? '' : '-foreign');

const viewFor = ({ username }: User, row: JobSummary) =>
  row.owner === username ? toJobRecord(row) : toForeignRecord(row);

/** Without `name` the new job has the name of the repeated one. */
const repetition = z.strictObject({ name: jobName }).meta({ id: 'Repetition' });

/** Filters that would reveal what somebody works on. */
const PRIVATE_FILTERS = ['session', 'project', 'model', 'name', 'label'] as const;

/** Whose jobs are listed; null: everybody's. */
function chooseOwner(user: User, query: JobsQuery): string | null {
  const { owner = user.username } = query;
  if (owner === user.username) return owner;
  if (!user.administrator)
    throw forbidden("only server administrators list others' jobs.", 'Leave owner out.');
  const fields = PRIVATE_FILTERS.filter(filter => query[filter] !== undefined);
  if (fields.length > 0)
    throw invalidInput(
      fields.map(field => ({
        field,
        problem: "looks into others' work, so it goes with no owner",
      })),
      'Leave it out, or leave owner out.',
    );
  return owner === '*' ? null : owner;
}

const leftOnHost = () =>
  conflict(
    'what the job has left on its host is not removed yet.',
    'Try again in some seconds; where the host cannot be reached, close the session first.',
  );

/** Locks the rights to end another user's job, before the rows that this changes. */
async function lockRights(tx: Tx, res: Response, { owner }: JobSummary): Promise<void> {
  const me = currentUser(res);
  if (owner !== me.username) await lockAdministrator(tx, me);
}

/** Locks the job until `tx` ends, so that of two requests with one tag in If-Match the second fails. */
async function lockUnchanged(
  tx: Tx,
  { req, res, id }: Exchange & { id: string },
): Promise<{ cancelRequested: Date | null }> {
  const [locked] = await tx
    .select({
      owner: jobs.owner,
      version: jobs.version,
      state: jobs.state,
      cancelRequested: jobs.cancelRequested,
    })
    .from(jobs)
    .where(eq(jobs.id, id))
    .for('update');
  if (!locked) throw unknownJob();
  checkIfMatch(req, tagFor(currentUser(res), locked));
  return locked;
}
