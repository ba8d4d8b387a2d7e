import { and, desc, eq, lt } from 'drizzle-orm';
import type { Request, Response, Router } from 'express';
import { z } from 'zod';
import { type JobRow, jobs } from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors.ts';
import { isId } from '../../shared/ids.ts';
import { cancelJob } from '../../shared/jobs/cancel.ts';
import { isJobKind, type JobKind, jobDefinition, type Payload } from '../../shared/jobs/catalog.ts';
import { readStream, STREAMS } from '../../shared/jobs/output.ts';
import type { ApiContext } from '../context.ts';
import { drained } from '../drained.ts';
import { currentUser } from '../middleware/authenticate.ts';
import { entityTag, page, pageQuery, sendRecord } from '../records.ts';
import { pathParameter, resource } from '../resource.ts';
import { readPreference, startRequestedJob, untilNoLongerWaiting } from '../run-request.ts';
import { sendObject } from '../send-object.ts';
import { useSession } from '../sessions.ts';
import { streamJobEvents } from '../stream-job-events.ts';
import { parseQuery } from '../validate.ts';

const outputQuery = z.strictObject({
  stream: z.enum(STREAMS).default('stdout'),
  offset: z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER).default(0),
});

/** A job as its owner sees it. */
export const jobView = (row: JobRow) => ({
  id: row.id,
  kind: row.kind,
  state: row.state,
  progress: row.progress,
  message: row.message,
  session: row.session,
  worker: row.attempt === null ? null : (row.worker?.split('/').slice(0, 2).join('/') ?? null),
  created: row.created,
  started: row.started,
  finished: row.finished,
  result: publicResult(row),
  error: row.error,
  retryOf: row.retryOf,
});

/** Where an object lies is nobody's business outside. */
function publicResult({ result }: JobRow): unknown {
  if (result === null || typeof result !== 'object') return result;
  const { object: _, ...rest } = result as Record<string, unknown>;
  return rest;
}

/** What a server administrator sees of other people's jobs: never command, payload or output. */
const foreignView = ({ id, kind, state, created, started, finished, worker, owner }: JobRow) => ({
  id,
  kind,
  state,
  created,
  started,
  finished,
  worker,
  owner,
});

/** Jobs: everything long, its state, its output as it comes, its result. A job is its owner's alone. */
export function routeJobs(router: Router, api: ApiContext): void {
  const { db } = api.database;
  const findAny = async (req: Request): Promise<JobRow | undefined> => {
    const id = pathParameter(req, 'id');
    const [row] = isId(id) ? await db.select().from(jobs).where(eq(jobs.id, id)) : [];
    return row;
  };
  const find = async (req: Request, res: Response): Promise<JobRow> => {
    const row = await findAny(req);
    if (row?.owner !== currentUser(res).username)
      throw new WindlassError('not_found', {
        detail: 'Not found: there is no such job.',
        hint: 'GET /api/jobs lists yours.',
      });
    return row;
  };
  /** Administrators may see that a job exists and cancel it. */
  const findForOperation = async (req: Request, res: Response): Promise<JobRow> => {
    const row = currentUser(res).administrator ? await findAny(req) : undefined;
    return row ?? find(req, res);
  };

  resource(router, '/jobs', {
    get: async (req, res) => {
      const { limit, after } = parseQuery(req, pageQuery);
      const mine = eq(jobs.owner, currentUser(res).username);
      const rows = await db
        .select()
        .from(jobs)
        .where(after === undefined ? mine : and(mine, lt(jobs.id, after)))
        .orderBy(desc(jobs.id))
        .limit(limit + 1);
      const { items, next } = page(rows, limit, row => row.id);
      res.json({ items: items.map(jobView), next });
    },
  });

  resource(router, '/jobs/:id', {
    get: async (req, res) => {
      let row = await findForOperation(req, res);
      const { wait } = readPreference(req);
      if (wait && !row.finished) {
        res.set('Preference-Applied', `wait=${wait}`);
        row =
          (await api.jobs.changed(
            row.id,
            row.version,
            untilNoLongerWaiting(api, res, wait).signal,
          )) ?? row;
      }
      const view = row.owner === currentUser(res).username ? jobView : foreignView;
      sendRecord(req, res, { tag: entityTag(row.version), record: () => view(row) });
    },
    delete: async (req, res) => {
      const row = await findForOperation(req, res);
      const cancelled = await cancelJob(db, row.id);
      if (cancelled.length === 0)
        throw new WindlassError('conflict', {
          detail: `Conflict: the job has ended: ${row.state}.`,
          hint: 'There is nothing left to cancel.',
        });
      api.notifications.publish('cancel', row.id);
      api.notifications.publish('job', row.id);
      res.status(202).location(`/api/jobs/${row.id}`).json({ id: row.id });
    },
  });

  resource(router, '/jobs/:id/events', {
    get: async (req, res) => streamJobEvents(api, req, res, await find(req, res)),
  });

  resource(router, '/jobs/:id/output', {
    get: async (req, res) => {
      const row = await find(req, res);
      const { stream, offset } = parseQuery(req, outputQuery);
      const total = stream === 'stdout' ? row.stdoutBytes : row.stderrBytes;
      res.type('application/octet-stream').set('Cache-Control', 'no-store');
      res
        .set('Output-Complete', String(row.finished !== null))
        .set('X-Content-Type-Options', 'nosniff');
      res.set('Content-Length', String(Math.max(0, total - offset)));
      if (req.method === 'HEAD' || offset >= total) return void res.end();
      await sendBytes(
        res,
        readStream({ db, objects: api.objects }, row.id, { stream, from: offset, until: total }),
        total - offset,
      );
    },
  });

  resource(router, '/jobs/:id/result', {
    get: async (req, res) => {
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
  });

  resource(router, '/jobs/:id/retry', {
    post: async (req, res) => {
      const row = await find(req, res);
      const { kind } = row;
      if (!isJobKind(kind) || !jobDefinition(kind).retry)
        throw new WindlassError('conflict', {
          detail: `Conflict: a ${kind} cannot be repeated.`,
          hint: 'Send the request again that started it.',
        });
      if (!row.finished)
        throw new WindlassError('conflict', {
          detail: `Conflict: the job is ${row.state}.`,
          hint: 'Wait for its end, or cancel it.',
        });
      const job = await startRequestedJob(api, req, res, async tx => {
        await useSession(tx, {
          sid: row.session ?? '',
          owner: row.owner,
          idleSeconds: api.config.SESSION_IDLE_TIMEOUT,
        });
        return {
          kind,
          payload: row.payload as Payload<JobKind>,
          session: row.session ?? undefined,
          retryOf: row.id,
        };
      });
      res.status(202).location(`/api/jobs/${job.id}`).json(jobView(job));
    },
  });
}

/** Exactly `length` bytes: more may be stored meanwhile, and the next request gets those. */
async function sendBytes(
  res: Response,
  source: AsyncIterable<Buffer>,
  length: number,
): Promise<void> {
  let left = length;
  for await (const bytes of source) {
    const part = bytes.subarray(0, left);
    left -= part.length;
    if (!res.write(part) && !(await drained(res))) return;
    if (left === 0) break;
  }
  // Fewer than announced: the answer must not look whole.
  if (left > 0) res.destroy();
  else res.end();
}
