import { setTimeout as delay } from 'node:timers/promises';
import type { JobRow } from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors/errors.ts';
import type { SessionContext } from '../context.ts';
import { ReleaseJob } from '../engine/release-job.ts';
import { isUnanswered } from '../host-agent/no-answer.ts';
import type { RemoteSession } from './remote-session.ts';
import { placeOfLogin } from './session-logins.ts';

/** For so long a connection is tried, from the first try or from its loss. */
const CONNECT_FOR_MS = 60_000;
/**
 * After so long without a connection a job yields its slot between tries, so that one absent host does not fill all
 * slots.
 */
const KEEP_SLOT_MS = 4_000;
/** After a connection that lasted this long, work has the full time again to reconnect. */
const STABLE_MS = 5_000;
/** And that of a host which was away before and does not answer now: longer than any wait for an answer. */
const ANSWERED_MS = 200_000;
const LONGEST_PAUSE_MS = 4_000;
/** A job waits for so long until its user has logged in again. */
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
 * or ReleaseJob for a few seconds while the host stays away.
 */
export async function withSession<T>(
  context: SessionContext,
  work: (session: RemoteSession) => Promise<T>,
  { signal = () => context.signal, reconnect = true }: SessionOptions = {},
): Promise<T> {
  const { job } = context;
  let since = performance.now();
  /** For how long earlier attempts at the job tried before they yielded their slot. */
  let earlier = job.unreachableSince ? Date.now() - job.unreachableSince.getTime() : 0;
  let wasSilent = false;
  for (let tries = 0; ; tries++) {
    let connected: number | undefined;
    try {
      return await context.worker.sessions.use(context.sid, signal(), async session => {
        connected = performance.now();
        // The host was not away while it waited for its user. One that is silent after the login is.
        if (earlier > 0 && isLoginOfOutage(context, session, earlier + connected - since))
          earlier = 0;
        if (job.unreachableSince) await context.update({ unreachableSince: null });
        return work(session);
      });
    } catch (error) {
      signal().throwIfAborted();
      if (isReconnectRequired(error)) throw await awaitReconnect(context, error);
      const isSilent = connected !== undefined && isUnanswered(error);
      const stableMs = isSilent && (wasSilent || earlier > 0) ? ANSWERED_MS : STABLE_MS;
      wasSilent = isSilent;
      if (connected && performance.now() - connected > stableMs) {
        since = performance.now();
        tries = 0;
        earlier = 0;
      }
      const tried = performance.now() - since;
      const isTransient = reconnect && error instanceof WindlassError && error.retryable;
      if (!isTransient) throw error;
      if (earlier + tried > CONNECT_FOR_MS) {
        // From this, a follower of the run learns that the host is away.
        if ((!connected || isSilent) && isRunning(job) && !job.unreachableSince)
          await context.update({ unreachableSince: new Date(Date.now() - earlier - tried) });
        throw error;
      }
      // Once for each outage: many jobs may wait for one host.
      const isFirst = tries === 0 && !job.unreachableSince;
      context.log[isFirst ? 'info' : 'debug']({ err: error, tries }, 'connecting again');
      // A video would lose what it has encoded, and videos of other hosts do not queue for few slots as commands do.
      if ((isSilent || tried > KEEP_SLOT_MS) && job.queue !== 'video') {
        if (!job.unreachableSince)
          await context.update({ unreachableSince: new Date(Date.now() - earlier - tried) });
        throw new ReleaseJob('the host cannot be reached', 2 + Math.random() * 4);
      }
      // Jittered, so that the jobs of a host that comes back do not all connect at once.
      const pause = Math.min(250 * 2 ** tries, LONGEST_PAUSE_MS) * (0.5 + Math.random());
      await delay(pause, undefined, { signal: signal() }).catch(() => {});
    }
  }
}

/** Whether only the session's user can make its connection again. */
export const isReconnectRequired = (error: unknown): error is WindlassError =>
  error instanceof WindlassError && error.code === 'reconnect_required';

/** A batch job is on its host from the directory on that was recorded. */
const isRunning = ({ kind, runAt, runPlace, runRemoved }: JobRow) =>
  runAt !== null && !runRemoved && (kind !== 'batch' || runPlace !== null);

/** Whether the user logged in for this connection after the outage began. */
function isLoginOfOutage(
  { worker, sid }: SessionContext,
  { connectedAt }: RemoteSession,
  outageMs: number,
): boolean {
  const pooled = worker.sessions.find(sid);
  return pooled?.livesWithConnection === true && performance.now() - connectedAt < outageMs;
}

/** What a job must throw if only its user can restore the session's connection. */
async function awaitReconnect(context: SessionContext, error: WindlassError): Promise<Error> {
  const { worker, job, sid } = context;
  const place = await placeOfLogin(worker, sid);
  if (place === 'elsewhere') return new ReleaseJob('another worker has the connection', 0.5);
  // What runs on the host goes on, and its follower knows for how long.
  if (isRunning(job)) return error;
  const since = job.unreachableSince ?? new Date();
  if (Date.now() - since.getTime() > RECONNECT_FOR_MS) return error;
  if (!job.unreachableSince) await context.update({ unreachableSince: since });
  return new ReleaseJob('its user is to log in again', 2 + Math.random() * 2);
}
