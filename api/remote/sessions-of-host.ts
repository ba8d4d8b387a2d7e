import { and, count, eq, isNotNull, isNull, notExists, or, sql } from 'drizzle-orm';
import { NAMED_SESSION, type NamedSession } from '../../shared/audit/session-target.ts';
import { anyOf } from '../../shared/database/any-of.ts';
import type { Tx } from '../../shared/database/connect.ts';
import { hosts, sessions } from '../../shared/database/schema.ts';
import { conflict } from '../../shared/errors/errors.ts';
import { HOST_CHANGED } from '../../shared/ssh/destination.ts';
import { type EndedSessions, endSessions, isActiveOrOpening } from './sessions.ts';

/** Those of the sessions that a change of their host has ended and that had been opened. */
export async function listEndedByHost(tx: Tx, sids: string[]): Promise<NamedSession[]> {
  return tx
    .select(NAMED_SESSION)
    .from(sessions)
    .where(
      and(
        sql`${sessions.sid} = ${anyOf(sids)}`,
        eq(sessions.endReason, HOST_CHANGED),
        isNotNull(sessions.opened),
      ),
    );
}

/** The sessions that a change of the host would end, on it and on the hosts behind it: their workers are to be told. */
export async function listOpenSessions(tx: Tx, hostname: string): Promise<string[]> {
  const rows = await tx
    .select({ sid: sessions.sid })
    .from(sessions)
    .where(and(sql`${sessions.hostname} in (${behind(hostname)})`, isNull(sessions.ended)));
  return rows.map(row => row.sid);
}

/** The names of a host and of all that are reached through it. */
const behind = (hostname: string) => sql`with recursive behind(name) as (
    select ${hostname}::text
    union select hosts.name from hosts join behind on hosts.jump = behind.name
  ) select name from behind`;

/**
 * Ends the sessions on a host, and cancels their jobs, whose owners are not on its list. The caller has written the list. Those
 * that are being opened are refused when they would open.
 */
export async function endUnlistedSessions(tx: Tx, hostname: string): Promise<EndedSessions> {
  const listed = tx
    .select({ name: hosts.name })
    .from(hosts)
    .where(
      and(
        eq(hosts.name, hostname),
        or(isNull(hosts.users), sql`${sessions.owner} = any(${hosts.users})`),
      ),
    );
  return endSessions(
    tx,
    and(
      eq(sessions.hostname, hostname),
      isNull(sessions.ended),
      isNotNull(sessions.opened),
      notExists(listed),
    ),
  );
}

/**
 * Throws `conflict` while sessions are open on a host that is to be removed. The caller has locked the host's row, as opening a
 * session does.
 */
export async function refuseOpenSessions(
  tx: Tx,
  { name, idleSeconds }: { name: string; idleSeconds: number },
): Promise<void> {
  const [open] = await tx
    .select({ n: count() })
    .from(sessions)
    .where(and(eq(sessions.hostname, name), isActiveOrOpening(tx, idleSeconds)));
  if (!open?.n) return;
  throw conflict(
    `${open.n} sessions are open on ${name}.`,
    'Wait until they have ended; another machine can be added under another name.',
  );
}
