import { and, eq, isNull, sql } from 'drizzle-orm';
import { recordAudit } from '../../shared/audit/audit.ts';
import type { Db } from '../../shared/database/connect.ts';
import { type SessionRow, sessions } from '../../shared/database/schema.ts';
import type { Hops } from '../../shared/ssh/hops.ts';
import { destinationDigest, HOST_CHANGED } from '../../shared/ssh/host-place.ts';

/** A session, and the hops to its host where there are any. */
export interface SessionOnHost {
  session: Pick<SessionRow, 'sid' | 'hostname' | 'ended' | 'endReason'>;
  hops: Hops | undefined;
}

/**
 * Whether the hops to the host of an open session no longer lead to `destination`, or the session has ended for that. The
 * trigger of the table ends it at once; whoever writes to the database may have left that out.
 */
export function isHostChanged({ session, hops }: SessionOnHost, destination?: string): boolean {
  if (session.ended) return session.endReason === HOST_CHANGED;
  return !hops || (destination !== undefined && destinationDigest(hops) !== destination);
}

/** Ends a session as the trigger of `hosts` does, and erases its credential. */
export async function endForChangedHost(db: Db, sid: string): Promise<void> {
  await db.transaction(async tx => {
    const [ended] = await tx
      .update(sessions)
      .set({ ended: sql`now()`, endReason: HOST_CHANGED })
      .where(and(eq(sessions.sid, sid), isNull(sessions.ended)))
      .returning({ user: sessions.owner, opened: sessions.opened });
    await tx.update(sessions).set({ sealed: null, answers: null }).where(eq(sessions.sid, sid));
    // Whoever has changed the host's row is not known here.
    const by = { address: null, requestId: null };
    if (ended?.opened)
      await recordAudit(tx, { ...by, user: ended.user, action: 'session.close', target: sid });
  });
}
