import { setTimeout as delay } from 'node:timers/promises';
import { WindlassError } from '../../shared/errors.ts';
import { type JobContext, LetGo } from '../context.ts';
import type { RemoteSession } from './remote-session.ts';

/** A connection is tried for so long, counted from the first try or from the moment it was lost. */
const CONNECT_FOR_MS = 60_000;
/** Work that held its connection for so long before losing it has the full time to connect again. */
const SETTLED_MS = 5_000;
const LONGEST_PAUSE_MS = 10_000;

/**
 * Calls `work` with the session's connection, and again over a new one when it is lost. Throws LetGo at once when the
 * process stops, and the signal's reason when `signal` (by default: the job is over) is aborted.
 */
export async function whileConnected<T>(
  context: JobContext,
  work: (session: RemoteSession) => Promise<T>,
  options: { signal?: () => AbortSignal } = {},
): Promise<T> {
  const { signal = () => context.over } = options;
  let since = performance.now();
  for (let tries = 0; ; tries++) {
    let connected: number | undefined;
    try {
      return await context.worker.sessions.use(context.job.session ?? '', signal(), session => {
        connected = performance.now();
        return work(session);
      });
    } catch (error) {
      context.signal.throwIfAborted();
      if (context.stopping.aborted) throw new LetGo('the worker is stopping');
      if (connected && performance.now() - connected > SETTLED_MS) {
        since = performance.now();
        tries = 0;
      }
      const retryable = error instanceof WindlassError && error.retryable;
      if (!retryable || performance.now() - since > CONNECT_FOR_MS) throw error;
      context.log.info({ err: error, tries }, 'connecting again');
      // Jittered, so that the jobs of a host that comes back do not all come at once.
      const pause = Math.min(250 * 2 ** tries, LONGEST_PAUSE_MS) * (0.5 + Math.random());
      await delay(pause, undefined, { signal: signal() }).catch(() => {});
    }
  }
}
