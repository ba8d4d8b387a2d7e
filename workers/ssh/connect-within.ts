import type { HostRow } from '../../shared/database/schema.ts';
import { hostOf } from '../../shared/ssh/hops.ts';
import { connect, type Target } from './connect.ts';
import { unreachable } from './dial.ts';
import { namingHop } from './hop-errors.ts';
import type { Connection } from './log-in.ts';

/** Runs an attempt to connect to the last of these hops, when it may; not after the signal is aborted. */
type TimedAttempt = (
  hops: HostRow[],
  attempt: () => Promise<Connection>,
  signal: AbortSignal,
) => Promise<Connection>;

/**
 * connect() with a limit for all of it, waits for permits of the circuit breakers included. Throws `remote_connection_failed`
 * when the time is over, which names the hop where that was.
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
