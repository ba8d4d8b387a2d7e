import { randomBytes } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { recordAudit } from '../audit/audit.ts';
import { hashPassword } from '../secrets/passwords.ts';
import type { Database } from './connect.ts';
import { users } from './schema.ts';

/**
 * Creates the first administrator unless there are users. Returns whether it did, and the generated password, to be shown
 * once, where none was given. Safe to run concurrently: one insert wins.
 */
export async function createFirstAdministrator(
  { db }: Database,
  given: { username: string; password: string | undefined },
): Promise<{ isMade: boolean; madeUp?: string }> {
  const [any] = await db.select({ one: sql`1` }).from(users).limit(1);
  if (any) return { isMade: false };
  const madeUp = given.password === undefined ? randomBytes(12).toString('base64url') : undefined;
  const passwordHash = await hashPassword(given.password ?? madeUp ?? '');
  const made = await db.transaction(async tx => {
    const [row] = await tx
      .insert(users)
      .values({ username: given.username, passwordHash, administrator: true })
      .onConflictDoNothing()
      .returning({ target: users.username });
    const by = { user: null, address: null, requestId: null };
    if (row) {
      await recordAudit(tx, { ...by, action: 'user.create', ...row });
      await recordAudit(tx, { ...by, action: 'user.promote', ...row });
    }
    return row;
  });
  return made ? { isMade: true, madeUp } : { isMade: false };
}
