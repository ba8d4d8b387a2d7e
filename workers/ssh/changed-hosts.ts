import { and, eq, isNull, sql } from 'drizzle-orm';
import { recordAudit } from '../../shared/audit/audit.ts';
import { NAMED_SESSION, sessionTarget } from '../../shared/audit/session-target.ts';
import type { Db } from '../../shared/database/connect.ts';
import { type SessionRow, sessions } from '../../shared/database/schema.ts';
import { destinationDigest, HOST_CHANGED } from '../../shared/ssh/destination.ts';
import type { Hops } from '../../shared/ssh/hops.ts';

/** A session with the current hops to its host, if there are any. */
export interface SessionOnHost {
  session: Pick<SessionRow, 'sid' | 'hostname' | 'ended' | 'endReason'>;
  hops: Hops | undefined;
}

/**
 * Whether the hops to the host of an open session have left `destination`, or the session has ended for that. A trigger
 * ends it at once, but a writer to the database may have bypassed that.
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
      .returning({ ...NAMED_SESSION, user: sessions.owner, opened: sessions.opened });
    await tx.update(sessions).set({ sealed: null, answers: null }).where(eq(sessions.sid, sid));
    // Whoever has changed the host's row is not known here.
    const by = { address: null, requestId: null };
    if (!ended?.opened) return;
    const target = sessionTarget(ended);
    await recordAudit(tx, { ...by, user: ended.user, action: 'session.close', target });
  });
}
