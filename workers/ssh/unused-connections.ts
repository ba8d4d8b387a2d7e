import { inArray } from 'drizzle-orm';
import type { Db } from '../../shared/database/connect.ts';
import { sessions } from '../../shared/database/schema.ts';
import { readHops } from '../../shared/ssh/hops.ts';
import { isHostChanged, type SessionOnHost } from './changed-hosts.ts';
import { type PooledConnection, versionsOf } from './pooled-connection.ts';

/** A connection that was not used for so long is closed. */
const IDLE_MS = 300_000;

/** The sessions as they are now, by their ids. */
export async function readSessions(db: Db, sids: string[]): Promise<Map<string, SessionOnHost>> {
  const rows = await db.select().from(sessions).where(inArray(sessions.sid, sids));
  const hops = await readHops(
    db,
    rows.map(({ hostname }) => hostname),
  );
  return new Map(rows.map(session => [session.sid, { session, hops: hops.get(session.hostname) }]));
}

/**
 * Retires idle connections, and those of ended sessions that nothing needs. If an entry of the hops was changed, the
 * next use connects anew; if they lead to another destination, the connection is closed at once.
 */
export function judgeConnection(
  pooled: PooledConnection,
  now: SessionOnHost | undefined,
  isNeeded: boolean,
): 'keep' | 'retire' | 'hostChanged' {
  const { madeFor, livesWithConnection } = pooled;
  if (now && isHostChanged(now, madeFor?.destination)) return 'hostChanged';
  const isAlive = now !== undefined && !now.session.ended;
  const isOutdated =
    isAlive && madeFor && now.hops !== undefined && madeFor.versions !== versionsOf(now.hops);
  if (isOutdated && !livesWithConnection) return 'retire';
  const isIdle = !livesWithConnection && performance.now() - pooled.usedAt > IDLE_MS;
  return isNeeded || pooled.users > 0 || (isAlive && !isIdle) ? 'keep' : 'retire';
}
