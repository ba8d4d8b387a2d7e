import { eq, sql } from 'drizzle-orm';
import { USER_COLUMNS, type UserRecord } from '../../shared/database/api-columns.ts';
import type { Database } from '../../shared/database/connect.ts';
import { users } from '../../shared/database/schema.ts';

/** A user with the hash of the password, which the API's role reads of one name at a time. */
export type LoginUser = UserRecord & { passwordHash: string | null };

export async function findLoginUser(
  { db }: Database,
  username: string,
): Promise<LoginUser | undefined> {
  const passwordHash = sql<string | null>`password_hash_of(${users.username})`;
  const [user] = await db
    .select({ ...USER_COLUMNS, passwordHash })
    .from(users)
    .where(eq(users.username, username));
  return user;
}
