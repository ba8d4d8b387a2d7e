import { and, eq, isNotNull } from 'drizzle-orm';
import type { Database } from '../database/connect.ts';
import { type SessionRow, sessions } from '../database/schema.ts';
import { isSealedWith, publicKeyOf, seal, unseal } from './secrets.ts';

export interface Resealed {
  resealed: number;
  /** Those sealed with a missing key or by 0.1.0, or damaged: their sessions cannot be used anyway. */
  unreadable: number;
}

/** Seals anew every credential that is not sealed with the first private key, except of sessions that change meanwhile. */
export async function resealSessions({ db }: Database, privateKeys: string): Promise<Resealed> {
  const publicKey = publicKeyOf(privateKeys);
  const sealed = await db
    .select({ sid: sessions.sid })
    .from(sessions)
    .where(isNotNull(sessions.sealed));
  const counts = { resealed: 0, unreadable: 0 };
  for (const { sid } of sealed) {
    const [session] = await db.select().from(sessions).where(eq(sessions.sid, sid));
    const before = session?.sealed;
    if (!before) continue;
    const isDone = [before, session.sealedEnv].every(
      bytes => bytes === null || isSealedWith(publicKey, bytes),
    );
    if (isDone) continue;
    const opened = await unseal(privateKeys, session, before).catch(() => undefined);
    if (!opened) {
      counts.unreadable++;
      continue;
    }
    const written = await db
      .update(sessions)
      .set({
        sealed: await seal(publicKey, session, opened),
        ...(await resealEnv(privateKeys, session)),
      })
      .where(and(eq(sessions.sid, sid), eq(sessions.sealed, before)))
      .returning({ sid: sessions.sid });
    counts.resealed += written.length;
  }
  return counts;
}

/** Variables that do not open are left as they are: a worker tells. */
async function resealEnv(
  privateKeys: string,
  session: SessionRow,
): Promise<Pick<SessionRow, 'sealedEnv'> | undefined> {
  if (!session.sealedEnv) return undefined;
  const context = { ...session, of: 'env' } as const;
  const opened = await unseal(privateKeys, context, session.sealedEnv).catch(() => undefined);
  if (!opened) return undefined;
  return { sealedEnv: await seal(publicKeyOf(privateKeys), context, opened) };
}
