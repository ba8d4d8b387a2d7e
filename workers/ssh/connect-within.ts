import { type Hops, hostOf } from '../../shared/ssh/hops.ts';
import { attemptAtOnce, connect, type Target, type TryLogin } from './connect.ts';
import { unreachable } from './dial.ts';
import { namingHop } from './hop-errors.ts';
import type { Connection } from './log-in.ts';

/**
 * connect() with a time limit that includes waits for the circuit breakers. Throws `remote_connection_failed` after it,
 * naming the hop that was reached.
 */
export async function connectWithin(
  ms: number,
  { attempt = attemptAtOnce, ...target }: Target,
): Promise<Connection> {
  const signal = AbortSignal.timeout(ms);
  let reached: Hops | undefined;
  const tracked: TryLogin = (until, logIn) => {
    reached = until;
    return attempt(until, logIn, signal);
  };
  return connect({ ...target, attempt: tracked }, signal).catch((error: unknown) => {
    if (!signal.aborted) throw error;
    const late = unreachable(
      hostOf(reached ?? target.hops),
      `no connection within ${ms / 1_000} s.`,
      error,
    );
    return namingHop(reached ?? [], target.hops)(late);
  });
}
