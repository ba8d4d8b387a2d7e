import { randomBytes } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { hashPassword } from '../passwords.ts';
import type { Database } from './connect.ts';
import { users } from './schema.ts';

/**
 * Creates the first administrator unless there are users. Returns the generated password, to be shown once, or undefined
 * when one was given or there are users. Safe to run concurrently: one insert wins.
 */
export async function createFirstAdministrator(
  { db }: Database,
  given: { username: string; password: string | undefined },
): Promise<string | undefined> {
  const [any] = await db.select({ one: sql`1` }).from(users).limit(1);
  if (any) return undefined;
  const madeUp = given.password === undefined ? randomBytes(12).toString('base64url') : undefined;
  const passwordHash = await hashPassword(given.password ?? madeUp ?? '');
  const [made] = await db
    .insert(users)
    .values({ username: given.username, passwordHash, administrator: true })
    .onConflictDoNothing()
    .returning();
  return made && madeUp;
}
