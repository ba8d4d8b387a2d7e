import { eq } from 'drizzle-orm';
import { sessions } from '../../shared/database/schema.ts';
import type { SessionContext } from '../context.ts';
import type { RemoteSession } from '../ssh/remote-session.ts';
import type { Expected } from './change-unchanged.ts';
import { withFileLock } from './file-locks.ts';
import { requireState } from './require-state.ts';

/** What a conditional change of a job expects of its file. Throws requireState()'s errors. */
export async function expectState(
  { worker, sid, signal }: SessionContext,
  session: RemoteSession,
  condition: { path: string; ifMatch: string[]; mayBeGone?: boolean },
): Promise<Expected> {
  const { db, direct } = worker.database;
  const state = await requireState(session, { ...condition, signal });
  const [{ host, account } = { host: '', account: '' }] = await db
    .select({ host: sessions.hostname, account: sessions.username })
    .from(sessions)
    .where(eq(sessions.sid, sid));
  return {
    state,
    alone: (path, work) => withFileLock({ direct, host, account, path }, signal, work),
  };
}
