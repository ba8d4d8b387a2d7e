import { and, eq, sql } from 'drizzle-orm';
import type { Db } from '../../shared/database/connect.ts';
import { type SessionRow, sessions } from '../../shared/database/schema.ts';
import { isConnectionHeld } from '../../shared/ssh/session-holder.ts';

/** Whether another live worker has the connection of a session whose login only its user can repeat. */
export async function isHeldElsewhere(db: Db, sid: string, worker: string): Promise<boolean> {
  const [row] = await db
    .select({ isElsewhere: sql<boolean>`${isConnectionHeld} and ${sessions.holder} <> ${worker}` })
    .from(sessions)
    .where(eq(sessions.sid, sid));
  return row?.isElsewhere ?? false;
}

/** Records that the worker has lost the connection. */
export async function releaseSession(db: Db, sid: string, worker: string): Promise<void> {
  await db
    .update(sessions)
    .set({ holder: null })
    .where(and(eq(sessions.sid, sid), eq(sessions.holder, worker)));
}

/** Records that only the user can log in again, where that was not known. */
export async function requireReconnect(db: Db, { sid }: Pick<SessionRow, 'sid'>): Promise<void> {
  await db.update(sessions).set({ interactive: true, holder: null }).where(eq(sessions.sid, sid));
}

/** Takes what the user has answered, which is sealed, out of the session's row. */
export async function takeSealedAnswers(db: Db, sid: string): Promise<Buffer | undefined> {
  return db.transaction(async tx => {
    const which = eq(sessions.sid, sid);
    const [row] = await tx
      .select({ answers: sessions.answers })
      .from(sessions)
      .where(which)
      .for('update');
    if (!row?.answers) return undefined;
    await tx.update(sessions).set({ answers: null }).where(which);
    return row.answers;
  });
}
