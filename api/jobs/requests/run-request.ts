import { sql } from 'drizzle-orm';
import type { Request, Response } from 'express';
import { followSignal } from '../../../shared/abort.ts';
import type { Tx } from '../../../shared/database/connect.ts';
import { type JobRow, type SessionRow, workers } from '../../../shared/database/schema.ts';
import { ERRORS, type ErrorCode, WindlassError } from '../../../shared/errors.ts';
import { isId } from '../../../shared/ids.ts';
import { cancelJob, publishCancelled } from '../../../shared/jobs/cancel.ts';
import {
  type AwaitedKind,
  JOBS,
  type JobKind,
  type Payload,
  type QueueName,
  type SessionKind,
} from '../../../shared/jobs/catalog.ts';
import { toQueueEntry } from '../../../shared/jobs/queue.ts';
import {
  findByIdempotencyKey,
  type Idempotency,
  type JobRequest,
  keepIdempotencyKey,
  startJob,
} from '../../../shared/jobs/start-job.ts';
import { startJobInSession } from '../../../shared/jobs/start-job-in-session.ts';
import { hmac } from '../../../shared/secrets.ts';
import type { ApiContext } from '../../context.ts';
import { parseIdempotencyKey } from '../../http/idempotency-key.ts';
import { currentUser } from '../../identity/current-user.ts';
import { lockSession, touchSession } from '../../remote/sessions.ts';
import type { JobSummary } from '../views/job-summary.ts';

/** Without a worker seen for so long, what a request waits for is refused instead. */
const NO_WORKER = sql`interval '30 seconds'`;

/** What a route starts: the job, after whatever must be true or written in the same transaction. */
export type Start = (tx: Tx) => Promise<Omit<JobRequest, 'owner' | 'limit' | 'requestId'>>;

/**
 * Starts a job for the request: one transaction for all of its rows, then the queue, which may be away. With an
 * Idempotency-Key the job that the same request started before is found instead.
 */
export async function startRequestedJob(
  api: ApiContext,
  req: Request,
  res: Response,
  start: Start,
): Promise<JobRow> {
  const owner = currentUser(res).username;
  const idempotency = readIdempotencyKey(api, req);
  const { job, isNew } = await api.database.db.transaction(async tx => {
    const found = idempotency && (await findByIdempotencyKey(tx, owner, idempotency));
    if (found) return { job: found, isNew: false };
    const request = await start(tx);
    const job = await startJob(tx, {
      ...request,
      owner,
      requestId: res.locals.requestId,
      limit: api.config.LIMIT_OPEN_JOBS,
    } as JobRequest<JobKind>);
    if (idempotency) await keepIdempotencyKey(tx, owner, idempotency, job.id);
    return { job, isNew: true };
  });
  if (isNew) enqueue(api, job);
  // Of new ones LIMIT_OPEN_JOBS bounds how many wait.
  else api.held.add(owner, res);
  return job;
}

/** Starts a job that needs nothing but the user's session, as quickly as that can be done. */
export async function startSessionJob<K extends SessionKind>(
  api: ApiContext,
  { req, res }: { req: Request; res: Response },
  request: { kind: K; payload: Payload<K>; session: string },
): Promise<JobRow> {
  const { session: sid } = request;
  const owner = currentUser(res).username;
  const idleSeconds = api.config.SESSION_IDLE_TIMEOUT;
  if (isId(sid) && parseIdempotencyKey(req) === undefined) {
    const { requestId } = res.locals;
    const limit = api.config.LIMIT_OPEN_JOBS;
    const all = { ...request, owner, requestId, limit };
    const job = await startJobInSession(api.database, all, idleSeconds);
    if (job) {
      enqueue(api, job);
      return job;
    }
  }
  let session: SessionRow | undefined;
  const job = await startRequestedJob(api, req, res, async tx => {
    session = await lockSession(tx, { sid, owner, idleSeconds });
    return request;
  });
  if (session) await touchSession(api.database.db, session);
  return job;
}

/** The queue may be away: then the dispatcher adds the entry. */
function enqueue(api: ApiContext, job: JobRow): void {
  if (job.epoch === 0) return;
  api.queues.add(job.queue as QueueName, [toQueueEntry(job)]).catch((error: unknown) => {
    api.log.debug(
      { err: error, job: job.id },
      'the queue does not take the entry; the dispatcher will',
    );
  });
}

function readIdempotencyKey({ config }: ApiContext, req: Request): Idempotency | undefined {
  const key = parseIdempotencyKey(req);
  if (key === undefined) return undefined;
  const route = `${req.method} ${req.path.replace(/^\/api(?=\/)/, '')}`;
  return { route, key, body: hmac(config.SECRET_KEY, route, JSON.stringify(req.body ?? null)) };
}

/** 503 unless a worker that takes such jobs was seen alive lately: for requests that are answered by their job. */
export async function requireWorker({ database }: ApiContext, kind: AwaitedKind): Promise<void> {
  const { queue } = JOBS[kind];
  const [found] = await database.db
    .select({ id: workers.id })
    .from(workers)
    .where(sql`${workers.seen} > now() - ${NO_WORKER} and ${workers.slots} ? ${queue}::text`)
    .limit(1);
  if (found) return;
  throw new WindlassError('unavailable', {
    detail: `Service unavailable: no ${queue} worker is running.`,
    hint: 'Try again in a while, or have an administrator start one.',
    headers: { 'Retry-After': '10' },
  });
}

/** Aborted when nobody waits for the answer any more, when the process stops, or after so many seconds (0: never). */
export function untilNoLongerWaiting(
  api: ApiContext,
  res: Response,
  seconds = 0,
): { signal: AbortSignal; left(): boolean } {
  const gone = new AbortController();
  res.once('close', () => gone.abort());
  if (res.destroyed) gone.abort();
  const stopping = followSignal(api.stopping);
  res.once('close', stopping.unlink);
  const signals = [gone.signal, stopping.signal];
  if (seconds > 0) signals.push(AbortSignal.timeout(Math.min(seconds * 1_000, 2 ** 31 - 1)));
  return { signal: AbortSignal.any(signals), left: () => gone.signal.aborted };
}

/** Waits for a job that ends with its client; throws what it failed with. */
export async function awaitOwnJob(
  api: ApiContext,
  res: Response,
  job: JobSummary,
): Promise<JobSummary> {
  const { signal, left } = untilNoLongerWaiting(api, res);
  const row = await api.jobs.ended(job, signal);
  if (!row.finished) {
    await cancelOwnJob(api, row.id);
    if (left()) return row;
    throw serviceStopping();
  }
  if (row.state !== 'succeeded') throw errorOfJob(row);
  return row;
}

/** Ends a job that nobody waits for any more. */
export async function cancelOwnJob(api: ApiContext, id: string): Promise<void> {
  publishCancelled(api, await cancelJob(api.database.db, id));
}

export function serviceStopping(): WindlassError {
  return new WindlassError('unavailable', {
    detail: 'Service unavailable: the service is stopping.',
    hint: 'Try again.',
    headers: { 'Retry-After': '2' },
  });
}

/** The error that a job ended with, as an answer of its own. */
export function errorOfJob(row: JobSummary, headers: Record<string, string> = {}): WindlassError {
  const { code, detail, hint, ...extra } = row.error as {
    code: ErrorCode;
    detail: string;
    hint?: string;
  };
  const known = Object.hasOwn(ERRORS, code) ? code : 'internal';
  return new WindlassError(known, { detail, hint, extra, headers });
}

/** RFC 7240: `respond-async` and `wait=N`; anything else is a preference we do not know. */
export function readPreference(req: Request): { respondAsync: boolean; wait: number | undefined } {
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
