import { sql } from 'drizzle-orm';
import { z } from 'zod';
import type { SessionRecord } from '../../shared/database/api-columns.ts';
import { jobs, sessions } from '../../shared/database/schema.ts';
import { ENGINES } from '../../shared/jobs/payloads/batch.ts';
import type { Config } from '../../shared/settings/config.ts';
import { isConnectionHeld } from '../../shared/ssh/session-holder.ts';
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
    expires: z.date().describe('When it ends if it is not used; later while a job is open.'),
  })
  .meta({ id: 'Session' });

const ofSession = sql`from ${jobs} where ${jobs.session} = ${sessions.sid}`;
/** What of a session its row does not tell. Each subquery reads one index entry, however many jobs there are. */
export const SESSION_USE = {
  /** When its last job ended; null where none has. */
  lastEnd: sql<string | null>`(select max(${jobs.finished}) ${ofSession})`,
  hasOpenJob: sql<boolean>`exists (select ${ofSession} and ${jobs.finished} is null)`,
  isConnectionHeld,
};

interface SessionUse {
  lastEnd: string | null;
  hasOpenJob: boolean;
  isConnectionHeld: boolean;
}

/** `expires` of a session with an open job goes on in such steps, so that the record does not change with each look at it. */
const STEP_MS = 60_000;

/**
 * The entity tag covers all of a session that can change. What only goes on with time, while a job is open, stands after the
 * `+`.
 */
export function tagOf(
  { accessed, expires, state }: { accessed: Date; expires: Date; state: string },
  { hasOpenJob }: SessionUse,
): string {
  const [used, ends] = [accessed, expires].map(time => time.getTime().toString(36));
  return entityTag(hasOpenJob ? `${used}-busy-${state}+${ends}` : `${used}-${ends}-${state}`);
}

/** A write does not depend on the time. */
export const withoutTime = (tag: string) => tag.replace(/\+\w+"$/, '"');

/** The record of a session. */
export function toSessionRecord(config: Config, row: SessionRecord, use: SessionUse) {
  const timeout = config.SESSION_IDLE_TIMEOUT * 1_000;
  const step = Math.min(STEP_MS, timeout);
  const idleSince = Math.max(
    row.accessed.getTime(),
    use.lastEnd ? new Date(use.lastEnd).getTime() : 0,
    use.hasOpenJob ? Math.floor(Date.now() / step) * step : 0,
  );
  return {
    sid: row.sid,
    hostname: row.hostname,
    username: row.username,
    agent: row.agent,
    // Without an agent there is nothing else.
    startup: row.agent ? row.startup : ('each' as const),
    env: row.envNames ?? [],
    state: stateOf(row, use.isConnectionHeld),
    engines: row.engines,
    created: row.created,
    accessed: row.accessed,
    expires: new Date(idleSince + timeout),
  };
}

function stateOf({ opened, interactive }: SessionRecord, isConnectionHeld: boolean) {
  if (!opened) return 'challenge' as const;
  return interactive && !isConnectionHeld ? ('reconnect' as const) : ('open' as const);
}
