import { sql } from 'drizzle-orm';
import { z } from 'zod';
import type { SessionRecord } from '../../shared/database/api-columns.ts';
import { jobs, sessions } from '../../shared/database/schema.ts';
import { ENGINES } from '../../shared/jobs/payloads/batch.ts';
import type { Config } from '../../shared/settings/config.ts';
import { STARTUP_FILE_MODES } from '../../shared/ssh/startup-files.ts';
import { entityTag } from '../http/conditional-requests.ts';

export const sessionRecord = z
  .object({
    sid: z.string(),
    hostname: z.string(),
    username: z.string(),
    agent: z.boolean(),
    startup: z.enum(STARTUP_FILE_MODES),
    env: z
      .array(z.string())
      .describe('The names of its variables: the first 100 at most, and 4 KiB of them.'),
    /** `challenge`: the host waits for answers; `reconnect`: its connection is lost, and only its user can log in again. */
    state: z.enum(['open', 'challenge', 'reconnect']),
    /** Null: not known. */
    engines: z.array(z.enum(ENGINES)).nullable(),
    created: z.date(),
    accessed: z.date(),
    expires: z.date(),
  })
  .meta({ id: 'Session' });

const ofSession = sql`from ${jobs} where ${jobs.session} = ${sessions.sid}`;
/**
 * When the session's last job ended, since when it is idle at the earliest; null while a job is open. Two subqueries, each of
 * which reads one index entry, however many jobs there are.
 */
export const lastEnd = sql<
  string | null
>`case when exists (select ${ofSession} and ${jobs.finished} is null) then null else (select max(${jobs.finished}) ${ofSession}) end`;

/** The entity tag covers all of a session that can change. */
export const tagOf = ({
  accessed,
  expires,
  state,
}: {
  accessed: Date;
  expires: Date;
  state: string;
}) => entityTag(`${accessed.getTime().toString(36)}-${expires.getTime().toString(36)}-${state}`);

/** The record of a session. */
export function toSessionRecord(
  config: Config,
  row: SessionRecord,
  { lastEnd, isConnectionHeld }: { lastEnd: string | null; isConnectionHeld: boolean },
) {
  const idleSince = Math.max(row.accessed.getTime(), lastEnd ? new Date(lastEnd).getTime() : 0);
  return {
    sid: row.sid,
    hostname: row.hostname,
    username: row.username,
    agent: row.agent,
    // Without an agent there is nothing else.
    startup: row.agent ? row.startup : ('each' as const),
    env: row.envNames ?? [],
    state: stateOf(row, isConnectionHeld),
    engines: row.engines,
    created: row.created,
    accessed: row.accessed,
    expires: new Date(idleSince + config.SESSION_IDLE_TIMEOUT * 1_000),
  };
}

function stateOf({ opened, interactive }: SessionRecord, isConnectionHeld: boolean) {
  if (!opened) return 'challenge' as const;
  return interactive && !isConnectionHeld ? ('reconnect' as const) : ('open' as const);
}
