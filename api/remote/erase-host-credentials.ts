import { and, count, eq, isNotNull, sql } from 'drizzle-orm';
import type { Tx } from '../../shared/database/connect.ts';
import { type HostRow, sessions } from '../../shared/database/schema.ts';
import { conflict } from '../../shared/errors.ts';
import { isActiveOrOpening } from './sessions.ts';

/** The machine that a host's entry names. */
type Place = Pick<HostRow, 'address' | 'port' | 'keys'>;

/** Whether the changed entry names another machine: another address without a common host key. */
export function isAnotherMachine(before: Place, after: Place): boolean {
  const isElsewhere = before.address !== after.address || before.port !== after.port;
  return isElsewhere && !after.keys.some(key => before.keys.includes(key));
}

/**
 * Erases the credentials kept for clean-up on a host, before its entry is deleted or names another machine, to which they
 * would be sent. Throws `conflict` while sessions are open there. The caller has locked the host's row, as opening a
 * session does.
 */
export async function eraseHostCredentials(
  tx: Tx,
  { name, idleSeconds }: { name: string; idleSeconds: number },
): Promise<void> {
  const [open] = await tx
    .select({ n: count() })
    .from(sessions)
    .where(and(eq(sessions.hostname, name), isActiveOrOpening(tx, idleSeconds)));
  if (open && open.n > 0)
    throw conflict(
      `${open.n} sessions are open on ${name}.`,
      'Wait until they have ended; another machine can be added under another name.',
    );
  await tx
    .update(sessions)
    .set({ sealed: null, ended: sql`coalesce(${sessions.ended}, now())` })
    .where(and(eq(sessions.hostname, name), isNotNull(sessions.sealed)));
}
