import { eq } from 'drizzle-orm';
import type { Tx } from '../../shared/database/connect.ts';
import { users } from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors.ts';

/**
 * Holds a user's row, before all else that is locked (see removeUser()): of things that are made at once, and may be so
 * many, the second counts the first; and who is removed just now leaves none to a later user of the same name. Throws
 * `unauthorized`.
 */
export async function lockUser(tx: Tx, username: string): Promise<void> {
  const [user] = await tx
    .select({ username: users.username })
    .from(users)
    .where(eq(users.username, username))
    .for('no key update');
  if (!user) throw new WindlassError('unauthorized');
}
