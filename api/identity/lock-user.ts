import { and, eq } from 'drizzle-orm';
import type { Tx } from '../../shared/database/connect.ts';
import { users } from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors/errors.ts';

/**
 * Locks a user's row, before any other lock (see removeUser()). It serializes the creation of things that are limited per
 * user, and the removal of the user. Throws `unauthorized` when the user is gone or disabled.
 */
export async function lockUser(tx: Tx, username: string): Promise<void> {
  const [user] = await tx
    .select({ username: users.username })
    .from(users)
    .where(and(eq(users.username, username), eq(users.disabled, false)))
    .for('no key update');
  if (!user) throw new WindlassError('unauthorized');
}
