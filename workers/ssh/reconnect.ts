import { setTimeout as delay } from 'node:timers/promises';
import { WindlassError } from '../../shared/errors.ts';
import { type JobContext, ReleaseJob } from '../context.ts';
import type { RemoteSession } from './remote-session.ts';

/** A connection is tried for so long, counted from the first try or from the moment it was lost. */
const CONNECT_FOR_MS = 60_000;
/** After so long without one a job gives its slot to others between its tries: one host that is away must not fill all. */
const HOLD_SLOT_MS = 4_000;
/** Work that held its connection for so long before losing it has the full time to connect again. */
const SETTLED_MS = 5_000;
const LONGEST_PAUSE_MS = 4_000;

/**
 * Calls `work` with the session's connection, and again over a new one when it is lost. Throws ReleaseJob at once when the
 * process stops, ReleaseJob for a few seconds when the host stays away, and the signal's reason when `signal` (by default: the
 * job is over) is aborted.
 */
export async function withSession<T>(
  context: JobContext,
  work: (session: RemoteSession) => Promise<T>,
  options: { signal?: () => AbortSignal } = {},
): Promise<T> {
  const { signal = () => context.over } = options;
  const { job } = context;
  let since = performance.now();
  /** What earlier holders of the job tried before they gave way. */
  let earlier = job.unreachableSince ? Date.now() - job.unreachableSince.getTime() : 0;
  for (let tries = 0; ; tries++) {
    let connected: number | undefined;
    try {
      return await context.worker.sessions.use(job.session ?? '', signal(), async session => {
        connected = performance.now();
        if (job.unreachableSince) await noteUnreachable(context, null);
        return work(session);
      });
    } catch (error) {
      context.signal.throwIfAborted();
      if (context.stopping.aborted) throw new ReleaseJob('the worker is stopping');
      if (connected && performance.now() - connected > SETTLED_MS) {
        since = performance.now();
        tries = 0;
        earlier = 0;
      }
      const held = performance.now() - since;
      const retryable = error instanceof WindlassError && error.retryable;
      if (!retryable || earlier + held > CONNECT_FOR_MS) throw error;
      context.log.info({ err: error, tries }, 'connecting again');
      // A video has work in hand here that it would lose, and no other host's videos wait for few slots as commands do.
      if (held > HOLD_SLOT_MS && job.queue === 'remote') {
        if (!job.unreachableSince)
          await noteUnreachable(context, new Date(Date.now() - earlier - held));
        throw new ReleaseJob('the host cannot be reached', 2 + Math.random() * 4);
      }
      // Jittered, so that the jobs of a host that comes back do not all come at once.
      const pause = Math.min(250 * 2 ** tries, LONGEST_PAUSE_MS) * (0.5 + Math.random());
      await delay(pause, undefined, { signal: signal() }).catch(() => {});
    }
  }
}

async function noteUnreachable(
  { job, update }: JobContext,
  unreachableSince: Date | null,
): Promise<void> {
  await update({ unreachableSince });
  job.unreachableSince = unreachableSince;
}
