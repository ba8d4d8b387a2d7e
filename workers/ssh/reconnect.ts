import { WindlassError } from '../../shared/errors/errors.ts';
import { mayRunOnHost } from '../../shared/jobs/run-intent.ts';
import { sleep } from '../../shared/process/abort.ts';
import type { SessionContext } from '../context.ts';
import { ReleaseJob } from '../engine/release-job.ts';
import { hostUnreachable, isReconnectRequired } from './host-unreachable.ts';
import { Outage } from './outage.ts';
import type { RemoteSession } from './remote-session.ts';
import { placeOfLogin } from './session-logins.ts';

/** How long a job waits for its user to log in again. */
const RECONNECT_FOR_MS = 600_000;

interface SessionOptions {
  /** Ends the tries; its reason is thrown. Read before each try. Default: the job's signal. */
  signal?: () => AbortSignal;
  /** False for work that cannot start again: any error of it or its connection is thrown. Default true. */
  reconnect?: boolean;
}

/** Whether the job's session has an agent. Begins to connect. Throws `session_not_found`. */
export function hasAgent({ worker, sid }: SessionContext): Promise<boolean> {
  return worker.sessions.hasAgent(sid);
}

/**
 * Calls `work` with the session's connection, and again over a new one when that is lost. Throws the signal's reason,
 * or ReleaseJob for a few seconds while the host stays unreachable.
 */
export async function withSession<T>(
  context: SessionContext,
  work: (session: RemoteSession) => Promise<T>,
  { signal = () => context.signal, reconnect = true }: SessionOptions = {},
): Promise<T> {
  const { job, worker, sid } = context;
  const outage = new Outage(job);
  for (;;) {
    try {
      return await worker.sessions.use(sid, signal(), async session => {
        outage.connected(isMadeByUser(context) ? session.connectedAt : undefined);
        if (job.unreachableSince) await context.updateVisibly({ unreachableSince: null });
        return work(session);
      });
    } catch (error) {
      signal().throwIfAborted();
      if (isReconnectRequired(error)) throw await awaitReconnect(context, error);
      if (!reconnect || !isRetryable(error)) throw error;
      const pauseMs = await judge(context, outage, error);
      await sleep(signal(), pauseMs);
    }
  }
}

/** Returns how long to wait before the next try. Throws the error, or ReleaseJob, where the job must not wait. */
async function judge(context: SessionContext, outage: Outage, error: unknown): Promise<number> {
  const { job, log, updateVisibly } = context;
  const next = outage.failed(error);
  const record = async () => {
    if (!job.unreachableSince) await updateVisibly({ unreachableSince: outage.began });
  };
  if (next === 'throw') {
    // From this, a follower of the run learns that the host is unreachable.
    if (outage.isHostUnreachable && mayRunOnHost(job)) await record();
    throw error;
  }
  const tries = outage.failures - 1;
  // Once for each outage: many jobs may wait for one host.
  const isFirst = tries === 0 && !job.unreachableSince;
  log[isFirst ? 'info' : 'debug']({ err: error, tries }, 'connecting again');
  if (next !== 'yield') return next.pauseMs;
  await record();
  throw hostUnreachable(2 + Math.random() * 4);
}

const isRetryable = (error: unknown) => error instanceof WindlassError && error.retryable;

/** Whether only the session's user could make the connection that it has. */
const isMadeByUser = ({ worker, sid }: SessionContext) =>
  worker.sessions.find(sid)?.livesWithConnection === true;

/** What a job must throw if only its user can restore the session's connection. */
async function awaitReconnect(context: SessionContext, error: WindlassError): Promise<Error> {
  const { worker, job, sid } = context;
  const place = await placeOfLogin(worker, sid);
  if (place === 'elsewhere') return new ReleaseJob('another worker has the connection', 0.5);
  // What runs on the host goes on, and its follower knows for how long.
  if (mayRunOnHost(job)) return error;
  const since = job.unreachableSince ?? new Date();
  if (Date.now() - since.getTime() > RECONNECT_FOR_MS) return error;
  if (!job.unreachableSince) await context.updateVisibly({ unreachableSince: since });
  return new ReleaseJob('its user is to log in again', 2 + Math.random() * 2);
}
