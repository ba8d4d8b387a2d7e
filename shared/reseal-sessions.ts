import { and, eq, isNotNull } from 'drizzle-orm';
import type { Database } from './database/connect.ts';
import { sessions } from './database/schema.ts';
import { readHopsTo } from './hops.ts';
import { placeOf } from './host-place.ts';
import { isSealedWith, publicKeyOf, seal, unseal } from './secrets.ts';

export interface Resealed {
  resealed: number;
  /** Those of no key that is there, or of other bytes than were sealed: their sessions cannot be used anyway. */
  unreadable: number;
}

/**
 * Seals every credential anew that is not sealed with the first of the private keys. A session that changes meanwhile is left
 * as it is then. What the release before sealed names no place: it gets that of its host's entry as it is now.
 */
export async function resealSessions({ db }: Database, privateKeys: string): Promise<Resealed> {
  const publicKey = publicKeyOf(privateKeys.split(',')[0] ?? '');
  const sealed = await db
    .select({ sid: sessions.sid })
    .from(sessions)
    .where(isNotNull(sessions.sealed));
  const counts = { resealed: 0, unreadable: 0 };
  for (const { sid } of sealed) {
    const [session] = await db.select().from(sessions).where(eq(sessions.sid, sid));
    const hops = session && (await readHopsTo(db, session.hostname));
    const before = session?.sealed;
    if (!hops || !before || isSealedWith(publicKey, before)) continue;
    const opened = await unseal(privateKeys, session, before).catch(() => undefined);
    if (!opened) {
      counts.unreadable++;
      continue;
    }
    const { place = placeOf(hops), secret } = opened;
    const written = await db
      .update(sessions)
      .set({ sealed: await seal(publicKey, session, { place, secret }) })
      .where(and(eq(sessions.sid, sid), eq(sessions.sealed, before)))
      .returning({ sid: sessions.sid });
    counts.resealed += written.length;
  }
  return counts;
}
