import type { Request } from 'express';
import type { SessionRecord } from '../../../shared/database/api-columns.ts';
import type { Tx } from '../../../shared/database/connect.ts';
import { isId } from '../../../shared/ids.ts';
import {
  isAwaitedKind,
  type JobKind,
  type Payload,
  type QueueName,
  type SessionKind,
} from '../../../shared/jobs/catalog.ts';
import {
  findEarlierRequest,
  type IdempotencyKey,
  storeIdempotencyKey,
} from '../../../shared/jobs/idempotency.ts';
import type { JobSummary } from '../../../shared/jobs/job-record.ts';
import { payloadBytes } from '../../../shared/jobs/payload-bytes.ts';
import { toQueueEntry } from '../../../shared/jobs/queue.ts';
import { type JobRequest, startJob } from '../../../shared/jobs/start-job.ts';
import { startJobInSession } from '../../../shared/jobs/start-job-in-session.ts';
import { chargeUserStorage } from '../../../shared/quotas/user-storage.ts';
import { hmac } from '../../../shared/secrets/secrets.ts';
import type { ApiContext } from '../../context.ts';
import type { Exchange } from '../../http/exchange.ts';
import { parseIdempotencyKey } from '../../http/idempotency-key.ts';
import { clientAddress } from '../../identity/client-address.ts';
import { currentUser } from '../../identity/current-user.ts';
import { lockSession, sessionKey, touchSession } from '../../remote/sessions.ts';
import { requireWorker } from './require-worker.ts';

/** What a request can fail with, besides errors of its own, when it is answered by a job in a session. */
export const SESSION_JOB_ERRORS = [
  'session_not_found',
  'host_changed',
  'remote_authentication_failed',
  'account_unusable',
  'host_not_allowed',
  'host_key_changed',
  'remote_connection_failed',
  'worker_lost',
  'cancelled',
] as const;

/** A job as a route asks for it. */
export type RequestedJob = {
  [K in JobKind]: Omit<
    JobRequest<K>,
    'owner' | 'limit' | 'onCount' | 'share' | 'requestId' | 'address' | 'runAt'
  >;
}[JobKind];

/** A job that answers a request. */
export interface StartedJob extends JobSummary {
  /** Whether the request repeats an earlier one, with the same Idempotency-Key, which started the job. */
  isRepeat: boolean;
}

/**
 * Starts the job that `prepare` returns, in the transaction of what `prepare` writes, and adds it to the queue. Where
 * the request repeats an Idempotency-Key, the job of the earlier request is returned instead.
 */
export function startRequestedJob(
  api: ApiContext,
  { req, res }: Exchange,
  prepare: (tx: Tx) => Promise<RequestedJob>,
): Promise<StartedJob> {
  return startJobUnder(api, { req, res, key: readIdempotencyKey(api, req) }, prepare);
}

/** Like startRequestedJob(), under this key instead of the request's own. */
export async function startJobUnder(
  api: ApiContext,
  { req, res, key }: Exchange & { key: IdempotencyKey | undefined },
  prepare: (tx: Tx) => Promise<RequestedJob>,
): Promise<StartedJob> {
  const owner = currentUser(res).username;
  const started = await api.database.db.transaction(async tx => {
    const earlier = key ? await findEarlierRequest(tx, owner, key) : {};
    if (earlier.job) return { ...earlier.job, isRepeat: true };
    await api.freeSpace.assertFree();
    const job = await startJob<JobKind>(tx, {
      ...(await prepare(tx)),
      owner,
      requestId: res.locals.requestId,
      address: clientAddress(req),
      runAt: earlier.runAt,
      ...limitsOf(api, owner),
    });
    if (key) await storeIdempotencyKey(tx, owner, key, job.id);
    const limit = api.config.LIMIT_USER_BYTES;
    // Last of all: see chargeUserStorage().
    if (job.payloadBytes !== null) await chargeUserStorage(tx, { user: owner, added: 0, limit });
    return { ...job, isRepeat: false };
  });
  // LIMIT_OPEN_JOBS bounds how many requests wait for new ones.
  if (started.isRepeat) api.longPollQuota.add(owner, res);
  else enqueue(api, started);
  return started;
}

/**
 * Starts a job that needs nothing but the user's session: in one statement, unless something about it is unusual. Throws
 * `unavailable` where the answer depends on the job and no worker is alive that takes it.
 */
export async function startSessionJob<K extends SessionKind>(
  api: ApiContext,
  { req, res }: Exchange,
  request: { kind: K; payload: Payload<K>; session: string; name?: string | undefined },
): Promise<StartedJob> {
  const { session: sid, kind } = request;
  if (isAwaitedKind(kind)) await requireWorker(api, kind);
  const own = sessionKey(api, res, sid);
  const { owner, idleSeconds } = own;
  const isUsual = parseIdempotencyKey(req) === undefined && payloadBytes(request.payload) === null;
  if (isId(sid) && isUsual) {
    await api.freeSpace.assertFree();
    const { requestId } = res.locals;
    const address = clientAddress(req);
    const all = { ...request, owner, requestId, address, ...limitsOf(api, owner) };
    const job = await startJobInSession(api.database, all, idleSeconds);
    if (job) {
      enqueue(api, job);
      return { ...job, isRepeat: false };
    }
  }
  let session: SessionRecord | undefined;
  const job = await startRequestedJob(api, { req, res }, async tx => {
    session = await lockSession(tx, own);
    return request as RequestedJob;
  });
  if (session) await touchSession(api, session);
  return job;
}

const limitsOf = ({ config, openJobCounts }: ApiContext, owner: string) => ({
  limit: openJobCounts.nextLimit(owner),
  onCount: (open: number) => openJobCounts.counted(owner, open),
  share: config.LIMIT_SHARE,
});

/**
 * Adds the job's entry, or leaves that to the dispatcher: soon where it decides, later where the queue is unavailable.
 */
function enqueue(api: ApiContext, job: JobSummary): void {
  if (!job.dispatched) {
    api.notifications.publish('waiting', job.queue);
    return;
  }
  api.queues.add(job.queue as QueueName, [toQueueEntry(job)]).catch((error: unknown) => {
    api.log.debug(
      { err: error, job: job.id },
      'the queue is unavailable; the dispatcher will add the entry',
    );
  });
}

export function readIdempotencyKey(
  { config }: ApiContext,
  req: Request,
): IdempotencyKey | undefined {
  const key = parseIdempotencyKey(req);
  if (key === undefined) return undefined;
  const route = `${req.method} ${addressOf(req)}`;
  const under = (secretKey: string) => hmac(secretKey, route, JSON.stringify(req.body ?? null));
  const before = config.SECRET_KEY_BEFORE;
  return {
    route,
    key,
    body: under(config.SECRET_KEY),
    ...(before ? { bodyBefore: under(before) } : {}),
  };
}

/** The address as it is usually spelled: Express matches any case, a slash at the end, and what is escaped needlessly. */
function addressOf({ route, params }: Request): string {
  const pattern: string = route.path;
  return pattern.replace(/[{}]/g, '').replace(/\/[:*](\w+)/g, (_, name: string) => {
    const segments = [params[name] ?? []].flat();
    return segments.map(segment => `/${encodeURIComponent(segment)}`).join('');
  });
}
