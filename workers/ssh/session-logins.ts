import { eq } from 'drizzle-orm';
import { sessions } from '../../shared/database/schema.ts';
import { abortable } from '../../shared/process/abort.ts';
import { unseal } from '../../shared/secrets/secrets.ts';
import type { WorkerContext } from '../context.ts';
import { isHeldElsewhere, takeSealedAnswers } from './held-sessions.ts';
import { challengeExpired, LoginDialogue } from './login-dialogue.ts';
import type { LoginStep } from './pooled-connection.ts';
import type { SessionPool } from './session-pool.ts';

/**
 * Logs in for a session, up to the host's questions to its user. A second call for the same job continues the first.
 */
export async function logInForSession(
  pool: SessionPool,
  { sid, job }: { sid: string; job: string },
  signal: AbortSignal,
): Promise<LoginStep> {
  let present = pool.find(sid);
  while (present) {
    if (await abortable(present.isUsable(job), signal)) return present.untilAsked(signal);
    // Another login may have taken its place meanwhile.
    const now = pool.find(sid);
    if (now === present) break;
    present = now;
  }
  if (present?.isConnected) pool.retire(present);
  else present?.close();
  return pool.open(sid, new LoginDialogue(job)).untilAsked(signal);
}

/** Continues a login that waits here. Throws `challenge_expired`. */
export async function answerLogin(
  pool: SessionPool,
  { sid, challenge, answers }: { sid: string; challenge: string; answers: string[] },
  signal: AbortSignal,
): Promise<LoginStep> {
  const pooled = pool.find(sid);
  if (!pooled?.dialogue) throw challengeExpired();
  pooled.dialogue.answer(challenge, answers);
  return pooled.untilAsked(signal);
}

/**
 * Where a login of the session waits for its user, for the answers to this challenge if one is given: here, at another
 * live worker, which may have the connection, or nowhere.
 */
export async function placeOfLogin(
  worker: Pick<WorkerContext, 'id' | 'database' | 'sessions'>,
  sid: string,
  challenge?: string,
): Promise<'here' | 'elsewhere' | 'nowhere'> {
  const dialogue = worker.sessions.find(sid)?.dialogue;
  if (challenge === undefined ? dialogue : dialogue?.waitsFor(challenge)) return 'here';
  return (await isHeldElsewhere(worker.database.db, sid, worker.id)) ? 'elsewhere' : 'nowhere';
}

/** What the session's user has answered last, once. */
export async function takeAnswers(
  { config, database: { db } }: Pick<WorkerContext, 'config' | 'database'>,
  sid: string,
): Promise<string[]> {
  const [row] = await db.select().from(sessions).where(eq(sessions.sid, sid));
  const sealed = await takeSealedAnswers(db, sid);
  const { SEAL_PRIVATE_KEYS } = config;
  if (!row || !sealed || !SEAL_PRIVATE_KEYS) throw challengeExpired();
  return (await unseal<string[]>(SEAL_PRIVATE_KEYS, row, sealed)).secret;
}
