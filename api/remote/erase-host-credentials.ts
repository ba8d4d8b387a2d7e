import { and, count, eq, isNotNull, sql } from 'drizzle-orm';
import type { Tx } from '../../shared/database/connect.ts';
import { type HostRow, sessions } from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors.ts';
import { isOpenOrOpening } from './sessions.ts';

/** Where an entry leads. */
type Place = Pick<HostRow, 'address' | 'port' | 'keys'>;

/** Whether the entry is to lead elsewhere, to what has none of the keys: a machine that moved has kept one. */
export function isAnotherMachine(before: Place, after: Place): boolean {
  const isElsewhere = before.address !== after.address || before.port !== after.port;
  return isElsewhere && !after.keys.some(key => before.keys.includes(key));
}

/**
 * Before an entry goes, or leads to another machine. The caller holds its row, as who opens a session does. Throws
 * `conflict` while sessions are open there; and what credentials are kept for cleaning up are erased, which would be sent
 * to whatever is behind that name next.
 */
export async function eraseHostCredentials(tx: Tx, name: string): Promise<void> {
  const [open] = await tx
    .select({ n: count() })
    .from(sessions)
    .where(and(eq(sessions.hostname, name), isOpenOrOpening(tx)));
  if (open && open.n > 0)
    throw new WindlassError('conflict', {
      detail: `Conflict: ${open.n} sessions are open on ${name}.`,
      hint: 'Wait until they have ended; another machine can be added under another name.',
    });
  await tx
    .update(sessions)
    .set({ sealed: null, ended: sql`coalesce(${sessions.ended}, now())` })
    .where(and(eq(sessions.hostname, name), isNotNull(sessions.sealed)));
}
