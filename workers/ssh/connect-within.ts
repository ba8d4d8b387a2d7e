import type { HostRow } from '../../shared/database/schema.ts';
import { hostOf } from '../../shared/ssh/hops.ts';
import { connect, type Target } from './connect.ts';
import { unreachable } from './dial.ts';
import { namingHop } from './hop-errors.ts';
import type { Connection } from './log-in.ts';

/** Runs an attempt to connect to the last of these hops when permitted, unless the signal is aborted. */
type TimedAttempt = (
  hops: HostRow[],
  attempt: () => Promise<Connection>,
  signal: AbortSignal,
) => Promise<Connection>;

/**
 * connect() with a time limit that includes waits for the circuit breakers. Throws `remote_connection_failed` after it,
 * naming the hop that was reached.
 */
export async function connectWithin(
  ms: number,
  target: Omit<Target, 'attempt'>,
  attempt: TimedAttempt,
): Promise<Connection> {
  const signal = AbortSignal.timeout(ms);
  let reached: HostRow[] = [];
  const tracked = (until: HostRow[], run: () => Promise<Connection>) => {
    reached = until;
    return attempt(until, run, signal);
  };
  return connect({ ...target, attempt: tracked }, signal).catch((error: unknown) => {
    if (!signal.aborted) throw error;
    const host = reached.at(-1) ?? hostOf(target.hops);
    const late = unreachable(host, `no connection within ${ms / 1_000} s.`, error);
    return namingHop(reached, target.hops)(late);
  });
}
