import { and, eq, ne } from 'drizzle-orm';
import type { Tx } from '../database/connect.ts';
import { rowExists } from '../database/row-exists.ts';
import { members } from '../database/schema.ts';
import { WindlassError } from '../errors/errors.ts';

/**
 * Throws `forbidden` unless the user may write to the project at the end of a job: their role may have been taken since it began. The
 * caller's transaction has locked the project, which a change of its members locks, too.
 */
export async function assertWriter(
  tx: Tx,
  { project, username }: { project: string; username: string },
): Promise<void> {
  const isWriter = and(
    eq(members.project, project),
    eq(members.username, username),
    ne(members.role, 'reader'),
  );
  if (await rowExists(tx, members, isWriter)) return;
  throw new WindlassError('forbidden', {
    detail: 'Forbidden: you may no longer write to the project that this was for.',
    hint: 'Ask one of the administrators of the project.',
  });
}
