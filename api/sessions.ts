import { and, eq, isNotNull, isNull, sql } from 'drizzle-orm';
import type { Tx } from '../shared/database/connect.ts';
import { jobs, type SessionRow, sessions } from '../shared/database/schema.ts';
import { WindlassError } from '../shared/errors.ts';
import { isId } from '../shared/ids.ts';
import { requestCancel } from '../shared/jobs/cancel.ts';

/** Open, this user's, and not idle past its time-out, whether or not upkeep has noticed yet. */
const usable = (sid: string, owner: string) =>
  and(
    eq(sessions.sid, sid),
    eq(sessions.owner, owner),
    isNotNull(sessions.opened),
    isNull(sessions.ended),
  );

function unknownSession(): WindlassError {
  return new WindlassError('session_not_found', { hint: 'Open a session with POST /api/remotes.' });
}

/** The user's session, for reading. Throws `session_not_found` also for another user's. */
export async function findSession(db: Tx, sid: string, owner: string): Promise<SessionRow> {
  const [row] = isId(sid) ? await db.select().from(sessions).where(usable(sid, owner)) : [];
  if (!row) throw unknownSession();
  return row;
}

/**
 * The user's session, for starting work in it: it cannot be ended before the caller's transaction commits, so that
 * ending it cancels the new job too. Counts as a use, written at most once a minute.
 */
export async function useSession(tx: Tx, sid: string, owner: string): Promise<SessionRow> {
  const [row] = isId(sid)
    ? await tx.select().from(sessions).where(usable(sid, owner)).for('share')
    : [];
  if (!row) throw unknownSession();
  return row;
}

/** Notes a use; `accessed` is written at most once a minute. */
export async function touchSession(db: Tx, { sid, accessed }: SessionRow): Promise<void> {
  if (Date.now() - accessed.getTime() < 60_000) return;
  await db
    .update(sessions)
    .set({ accessed: sql`now()` })
    .where(
      and(
        eq(sessions.sid, sid),
        isNull(sessions.ended),
        sql`${sessions.accessed} < now() - interval '1 minute'`,
      ),
    );
}

/** Ends the session at once and asks for the end of its jobs, whose ids it returns. */
export async function endSession(tx: Tx, sid: string, owner: string): Promise<string[]> {
  const ended = isId(sid)
    ? await tx
        .update(sessions)
        .set({ ended: sql`now()` })
        .where(usable(sid, owner))
        .returning({ sid: sessions.sid })
    : [];
  if (ended.length === 0) throw unknownSession();
  return requestCancel(tx, eq(jobs.session, sid));
}
