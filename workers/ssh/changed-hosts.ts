import { eq, sql } from 'drizzle-orm';
import type { Db } from '../../shared/database/connect.ts';
import { type SessionRow, sessions } from '../../shared/database/schema.ts';
import type { Hops } from '../../shared/ssh/hops.ts';
import { HOST_CHANGED, placeOf } from '../../shared/ssh/host-place.ts';

/** A session with the way to its host as it is now, if there is one. */
export interface SessionOnHost {
  session: Pick<SessionRow, 'sid' | 'hostname' | 'ended' | 'endReason'>;
  hops: Hops | undefined;
}

/**
 * Whether the host of an open session, with its jump hosts, is no longer at `place`, or the session has ended for that. The trigger of the table ends
 * it at once; whoever writes to the database may have left that out.
 */
export function isHostChanged({ session, hops }: SessionOnHost, place?: string): boolean {
  if (session.ended) return session.endReason === HOST_CHANGED;
  return !hops || (place !== undefined && placeOf(hops) !== place);
}

/** Ends a session as the trigger of `hosts` does, and erases its credential. */
export async function endForChangedHost(db: Db, sid: string): Promise<void> {
  await db
    .update(sessions)
    .set({
      sealed: null,
      answers: null,
      ended: sql`coalesce(${sessions.ended}, now())`,
      endReason: sql`case when ${sessions.ended} is null then ${HOST_CHANGED} else ${sessions.endReason} end`,
    })
    .where(eq(sessions.sid, sid));
}
