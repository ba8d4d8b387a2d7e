import { and, eq, ne } from 'drizzle-orm';
import type { Tx } from '../database/connect.ts';
import { members, users } from '../database/schema.ts';
import { forbidden } from '../errors/errors.ts';

/**
 * Throws `forbidden` unless the user may still write to the project when a job ends: the role may be gone, or the user
 * disabled. The caller's transaction has locked the project, as a change of its members does.
 */
export async function assertWriter(
  tx: Tx,
  { project, username }: { project: string; username: string },
): Promise<void> {
  const [writer] = await tx
    .select({ username: members.username })
    .from(members)
    .innerJoin(users, and(eq(users.username, members.username), eq(users.disabled, false)))
    .where(
      and(eq(members.project, project), eq(members.username, username), ne(members.role, 'reader')),
    );
  if (writer) return;
  throw forbidden(
    'you may no longer write to the project that this was for.',
    'Ask one of the administrators of the project.',
  );
}
