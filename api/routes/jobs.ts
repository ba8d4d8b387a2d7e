import { eq } from 'drizzle-orm';
import type { Request, Response } from 'express';
import { z } from 'zod';
import type { Tx } from '../../shared/database/connect.ts';
import { jobs } from '../../shared/database/schema.ts';
import { conflict, notFound, WindlassError } from '../../shared/errors.ts';
import { cancelJob, publishCancelled } from '../../shared/jobs/cancel.ts';
import { isJobKind, JOB_KINDS, jobDefinition } from '../../shared/jobs/catalog.ts';
import { OUTPUT_STREAMS } from '../../shared/jobs/output.ts';
import { detachJobs, removeJobs } from '../../shared/jobs/remove-jobs.ts';
import { ResponseQuota } from '../concurrency/response-quota.ts';
import { checkIfMatch, entityTag, sendRecord } from '../http/conditional-requests.ts';
import { pageOf } from '../http/pagination.ts';
import { queryInteger } from '../http/query-integer.ts';
import { pathParameter, resource } from '../http/resource.ts';
import { routes } from '../http/routes.ts';
import { sendObject } from '../http/send-object.ts';
import { invalidInput } from '../http/validate.ts';
import { auditOf } from '../identity/audit.ts';
import { currentUser } from '../identity/current-user.ts';
import type { User } from '../identity/password-verifier.ts';
import { awaitChange } from '../jobs/requests/prefer.ts';
import { type RequestedJob, startRequestedJob } from '../jobs/requests/start-requested-job.ts';
import { JobFeeds } from '../jobs/streaming/job-feeds.ts';
import { OutputReader } from '../jobs/streaming/output-reader.ts';
import { sendOutput } from '../jobs/streaming/send-output.ts';
import { streamJobEvents } from '../jobs/streaming/stream-job-events.ts';
import { findJob } from '../jobs/views/find-job.ts';
import type { JobSummary } from '../jobs/views/job-summary.ts';
import { foreignRecord, foreignView, jobRecord, jobView } from '../jobs/views/job-view.ts';
import { type JobsQuery, jobsQuery, listJobs } from '../jobs/views/list-jobs.ts';
import { answerWithLocation, operation, rangeAnswers } from '../openapi/operation.ts';
import { lockProjectForShare } from '../projects/access.ts';
import { lockSession } from '../remote/sessions.ts';

const outputQuery = z.strictObject({
  stream: z.enum(OUTPUT_STREAMS).default('stdout'),
  offset: queryInteger({ min: 0, max: Number.MAX_SAFE_INTEGER, default: 0 }),
});

/** Jobs: their states, events, outputs and results. Only its owner sees a job. */
export default routes('json-body', (router, api) => {
  const { db } = api.database;
  const reads = new OutputReader({ db, objects: api.objects });
  const feeds = new JobFeeds(api, reads);
  const open = new ResponseQuota('stream', api.config.LIMIT_STREAMS);
  const findAny = (req: Request) => findJob(db, pathParameter(req, 'id'));
  const find = async (req: Request, res: Response): Promise<JobSummary> => {
    const row = await findAny(req);
    if (row?.owner !== currentUser(res).username) throw unknownJob();
    return row;
  };
  /** Server administrators may see that a job exists, and cancel it. */
  const findForOperation = async (req: Request, res: Response): Promise<JobSummary> => {
    const row = currentUser(res).administrator ? await findAny(req) : undefined;
    return row ?? find(req, res);
  };

  resource(router, '/jobs', {
    get: operation({
      id: 'listJobs',
      topic: 'jobs',
      summary: 'List your jobs, the latest first',
      details: `A page looks through 10,000 jobs at most: where few match it is shorter than \`limit\`, and \`next\` goes on. What a job of each kind does: ${JOB_KINDS.map(kind => `${kind}: ${jobDefinition(kind).means}`).join(' ')}`,
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
        const page = await listJobs(db, chooseOwner(user, wanted), wanted);
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
        const found = await findForOperation(req, res);
        const row = await awaitChange(api, { req, res, row: found });
        const record = () => viewFor(currentUser(res), row);
        sendRecord(req, res, { tag: entityTag(row.version), record });
      },
    }),
    delete: operation({
      id: 'cancelJob',
      topic: 'jobs',
      summary: 'Cancel a job',
      headers: ['If-Match'],
      answers: { 202: answerWithLocation('Its end is asked for.', 'The job.') },
      errors: ['not_found', 'conflict'],
      handle: async ({ req, res }) => {
        const row = await findForOperation(req, res);
        const cancelled = await db.transaction(async tx => {
          if (req.get('If-Match') !== undefined) await lockUnchanged(tx, req, row.id);
          const jobs = await cancelJob(tx, row.id);
          if (jobs.length > 0) await auditOf(req, res)(tx, 'job.cancel', row.id);
          return jobs;
        });
        if (cancelled.length === 0)
          throw conflict(
            `the job has ended: ${row.state}.`,
            `DELETE /api/jobs/${row.id}/record removes its record.`,
          );
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
        const row = await findForOperation(req, res);
        if (!row.finished)
          throw conflict(
            `the job is ${row.state}.`,
            `Wait for its end, or cancel it with DELETE /api/jobs/${row.id}.`,
          );
        await db.transaction(async tx => {
          await detachJobs(tx, [row.id]);
          await lockUnchanged(tx, req, row.id);
          await removeJobs(tx, [row.id]);
        });
        api.notifications.publish('job', row.id);
        res.status(204).end();
      },
    }),
  });

  resource(router, '/jobs/:id/events', {
    get: operation({
      id: 'followJob',
      topic: 'jobs',
      summary: 'Follow a job: its state, progress and output as they come',
      details:
        'Server-sent events, each a `JobEvent`: `state` {state, error?}, the present one first unless the job has ended; `progress` {progress, message?}; `output` {stream, offset, text | base64}. After all output come the end state and `end`; the id of `end`, sent as Last-Event-ID, is answered 204, which stops an EventSource.',
      headers: ['Last-Event-ID'],
      answers: {
        200: { means: 'The stream of events.', types: ['text/event-stream'] },
        204: 'Last-Event-ID is that of `end`: there is no more.',
      },
      errors: ['not_found'],
      handle: async ({ req, res }) => {
        const row = await find(req, res);
        open.add(row.owner, res);
        streamJobEvents(feeds, { req, res, row });
      },
    }),
  });

  resource(router, '/jobs/:id/output', {
    get: operation({
      id: 'fetchJobOutput',
      topic: 'jobs',
      summary: 'Fetch the output of a command from an offset on',
      query: outputQuery,
      answers: {
        200: {
          means: 'The bytes stored so far, from there on.',
          types: ['application/octet-stream'],
          headers: { 'Output-Complete': '`true` once no more will come.' },
        },
      },
      errors: ['not_found'],
      handle: async ({ req, res, query }) => {
        const row = await find(req, res);
        const { stream, offset } = query();
        open.add(row.owner, res);
        const total = stream === 'stdout' ? row.stdoutBytes : row.stderrBytes;
        res.type('application/octet-stream').set('Cache-Control', 'no-store');
        res
          .set('Output-Complete', String(row.finished !== null))
          .set('X-Content-Type-Options', 'nosniff');
        res.set('Content-Length', String(Math.max(0, total - offset)));
        if (req.method === 'HEAD' || offset >= total) return void res.end();
        await sendOutput(reads, res, { job: row, stream, from: offset, until: total });
      },
    }),
  });

  resource(router, '/jobs/:id/result', {
    get: operation({
      id: 'fetchJobResult',
      topic: 'jobs',
      summary: 'Fetch the result of a job in bytes, such as a video',
      headers: ['If-None-Match', 'If-Range', 'Range'],
      answers: rangeAnswers(['video/mp4', 'video/webm'], 'All of it.', 'The range.'),
      errors: ['not_found', 'conflict', 'precondition_failed', 'range_not_satisfiable'],
      handle: async ({ req, res }) => {
        const row = await find(req, res);
        const { object, type } = (row.result ?? {}) as { object?: string; type?: string };
        if (!row.finished)
          throw new WindlassError('conflict', {
            detail: `Conflict: the job is ${row.state}.`,
            hint: 'Wait for its end.',
            headers: { 'Retry-After': '1' },
          });
        if (!object || !type)
          throw new WindlassError('not_found', {
            detail: 'Not found: this job has no result in bytes.',
          });
        await sendObject(api, req, res, { key: object, type });
      },
    }),
  });

  resource(router, '/jobs/:id/retry', {
    post: operation({
      id: 'retryJob',
      topic: 'jobs',
      summary: 'Do a job once more',
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
      handle: async ({ req, res }) => {
        const row = await find(req, res);
        const { kind, owner } = row;
        const idleSeconds = api.config.SESSION_IDLE_TIMEOUT;
        if (!isJobKind(kind) || !jobDefinition(kind).retry)
          throw conflict(
            `a ${kind} cannot be repeated.`,
            'Send the request again that started it.',
          );
        if (!row.finished)
          throw conflict(`the job is ${row.state}.`, 'Wait for its end, or cancel it.');
        const job = await startRequestedJob(api, req, res, async tx => {
          if (jobDefinition(kind).session)
            await lockSession(tx, { sid: row.session ?? '', owner, idleSeconds });
          const project = row.project ?? undefined;
          if (project) await lockProjectForShare(tx, project, { username: owner, role: 'writer' });
          const [same] = await tx
            .select({ payload: jobs.payload })
            .from(jobs)
            .where(eq(jobs.id, row.id));
          if (!same) throw unknownJob();
          return {
            kind,
            payload: same.payload,
            session: row.session ?? undefined,
            project,
            retryOf: row.id,
            name: row.name ?? undefined,
            label: row.label ?? undefined,
          } as RequestedJob;
        });
        res.status(202).location(`/api/jobs/${job.id}`).json(jobView(job));
      },
    }),
  });
});

const viewFor = ({ username }: User, row: JobSummary) =>
  row.owner === username ? jobView(row) : foreignView(row);

/** Filters that tell what is in somebody's work. */
const PRIVATE_FILTERS = ['session', 'project', 'model', 'name', 'label'] as const;

/** Whose jobs are listed; null: everybody's. */
function chooseOwner(user: User, query: JobsQuery): string | null {
  const { owner = user.username } = query;
  if (owner === user.username) return owner;
  if (!user.administrator)
    throw new WindlassError('forbidden', {
      detail: "Forbidden: only server administrators list others' jobs.",
      hint: 'Leave owner out.',
    });
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

/** Locks the job until `tx` ends, so that of two requests with one tag in If-Match the second fails. */
async function lockUnchanged(tx: Tx, req: Request, id: string): Promise<void> {
  const [locked] = await tx
    .select({ version: jobs.version })
    .from(jobs)
    .where(eq(jobs.id, id))
    .for('update');
  if (!locked) throw unknownJob();
  checkIfMatch(req, entityTag(locked.version));
}

const unknownJob = () => notFound('there is no such job.', 'GET /api/jobs lists yours.');
