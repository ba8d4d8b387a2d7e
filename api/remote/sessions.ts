import {
  and,
  eq,
  exists,
  isNotNull,
  isNull,
  or,
  type Placeholder,
  type SQL,
  sql,
} from 'drizzle-orm';
import type { Response } from 'express';
import { NAMED_SESSION, type NamedSession } from '../../shared/audit/session-target.ts';
import { anyOf } from '../../shared/database/any-of.ts';
import { SESSION_COLUMNS, type SessionRecord } from '../../shared/database/api-columns.ts';
import type { Tx } from '../../shared/database/connect.ts';
import { prepareOnce } from '../../shared/database/prepare-once.ts';
import { jobs, leftoverRuns, sessions } from '../../shared/database/schema.ts';
import { writeOrLog } from '../../shared/database/write-or-log.ts';
import { conflict, WindlassError } from '../../shared/errors/errors.ts';
import { isId } from '../../shared/ids.ts';
import { cancelJobsOf, SESSION_ENDED } from '../../shared/jobs/cancel.ts';
import { rowLeavesUnremoved } from '../../shared/jobs/run-intent.ts';
import { HOST_CHANGED, hostChanged } from '../../shared/ssh/destination.ts';
import type { ApiContext } from '../context.ts';
import { currentUser } from '../identity/current-user.ts';

/** A session of this owner; `idleSeconds` is SESSION_IDLE_TIMEOUT. */
export interface SessionKey {
  sid: string;
  owner: string;
  idleSeconds: number;
}

/** The session of the user who asks. */
export const sessionKey = (
  { config }: Pick<ApiContext, 'config'>,
  res: Response,
  sid: string,
): SessionKey => ({
  sid,
  owner: currentUser(res).username,
  idleSeconds: config.SESSION_IDLE_TIMEOUT,
});

/** Values, or placeholders of a prepared query. */
type Given<T> = { [K in keyof T]: T[K] | Placeholder };

const itsJobs = (tx: Tx, which: SQL) =>
  exists(
    tx
      .select({ id: jobs.id })
      .from(jobs)
      .where(and(eq(jobs.session, sessions.sid), which)),
  );

/**
 * Open and not idle past its time-out, whether or not upkeep has ended it, or waiting for its user to answer the host. Reads
 * jobs only when the last use is too old.
 */
export const isActive = (tx: Tx, idleSeconds: number | Placeholder) => {
  const oldest = sql`now() - make_interval(secs => ${idleSeconds})`;
  return and(
    isNull(sessions.ended),
    or(and(isNotNull(sessions.opened), wasUsedSince(tx, oldest)), isChallenged),
  );
};

const isChallenged = sql`${sessions.challengeExpires} > now()`;

const wasUsedSince = (tx: Tx, oldest: SQL) =>
  or(
    sql`${sessions.accessed} > ${oldest}`,
    // Two conditions, since each is one range of the index.
    itsJobs(tx, sql`${jobs.finished} is null`),
    itsJobs(tx, sql`${jobs.finished} > ${oldest}`),
  );

/** Active or being opened: counts against LIMIT_SESSIONS and prevents the removal of its host. */
export const isActiveOrOpening = (tx: Tx, idleSeconds: number) =>
  or(
    isActive(tx, idleSeconds),
    and(
      isNull(sessions.opened),
      isNull(sessions.ended),
      itsJobs(tx, sql`${jobs.finished} is null`),
    ),
  );

export const isOwnActiveSession = (tx: Tx, { sid, owner, idleSeconds }: Given<SessionKey>) =>
  and(eq(sessions.sid, sid), eq(sessions.owner, owner), isActive(tx, idleSeconds));

/** The user's session that has ended because its host was changed; this is told until its row is removed. */
const isEndedByHost = ({ sid, owner }: SessionKey) =>
  and(eq(sessions.sid, sid), eq(sessions.owner, owner), eq(sessions.endReason, HOST_CHANGED));

/** Why the user cannot use this session: `session_not_found` or `host_changed`. */
export async function explainNoSession(tx: Tx, key: SessionKey): Promise<WindlassError> {
  const [row] = isId(key.sid)
    ? await tx.select({ hostname: sessions.hostname }).from(sessions).where(isEndedByHost(key))
    : [];
  if (row) return hostChanged(row.hostname);
  return new WindlassError('session_not_found', { hint: 'Open a session with POST /api/remotes.' });
}

/** Whether a first login of the user's session waited for answers that did not come in time. */
export async function hasMissedChallenge(db: Tx, { sid, owner }: SessionKey): Promise<boolean> {
  const missed = and(
    eq(sessions.sid, sid),
    eq(sessions.owner, owner),
    isNull(sessions.opened),
    sql`${sessions.challengeExpires} <= least(now(), ${sessions.ended})`,
  );
  const [row] = isId(sid)
    ? await db.select({ sid: sessions.sid }).from(sessions).where(missed)
    : [];
  return row !== undefined;
}

/** The user's session, for reading. Throws `session_not_found`, for another user's session too, or `host_changed`. */
export async function findSession(db: Tx, key: SessionKey): Promise<SessionRecord> {
  const [row] = isId(key.sid) ? await selectUsable(db).execute({ ...key }) : [];
  if (!row) throw await explainNoSession(db, key);
  return row;
}

/** The session key of a prepared query. */
export const sessionPlaceholders = {
  sid: sql.placeholder('sid'),
  owner: sql.placeholder('owner'),
  idleSeconds: sql.placeholder('idleSeconds'),
};

const selectUsable = prepareOnce(db =>
  db
    .select(SESSION_COLUMNS)
    .from(sessions)
    .where(isOwnActiveSession(db, sessionPlaceholders))
    .prepare('find_session'),
);

/**
 * Locks the user's session. With `share`, for starting a job in it: the session cannot end before the caller's
 * transaction commits, so that its end cancels the new job too; it must be open. With `update`, for changing it.
 */
export async function lockSession(
  tx: Tx,
  key: SessionKey,
  lock: 'share' | 'update' = 'share',
): Promise<SessionRecord> {
  const [row] = isId(key.sid)
    ? await tx.select(SESSION_COLUMNS).from(sessions).where(isOwnActiveSession(tx, key)).for(lock)
    : [];
  if (!row) throw await explainNoSession(tx, key);
  if (lock === 'share' && !row.opened)
    throw conflict(
      'the session is not open: its host waits for answers.',
      'Send them with POST /api/remotes/(sid)/answers.',
    );
  return row;
}

/** Seconds between two records of uses. */
const TOUCH_SECONDS = 60;

/**
 * Records that the session is used, while bytes for its host arrive for which there is no job yet, until the returned
 * function is called.
 */
export async function keepSessionAlive(
  api: Pick<ApiContext, 'database' | 'log'>,
  session: Pick<SessionRecord, 'sid' | 'accessed'>,
  idleSeconds: number,
): Promise<() => void> {
  const seconds = Math.min(TOUCH_SECONDS, idleSeconds / 4);
  await touchSession(api, session, seconds);
  const touchAgain = () => touchSession(api, { ...session, accessed: LONG_AGO }, seconds);
  const timer = setInterval(touchAgain, seconds * 1_000);
  return () => clearInterval(timer);
}

const LONG_AGO = new Date(0);

/** Records a use in `accessed`, at most once in so many seconds. The request itself succeeds without it. */
export async function touchSession(
  { database, log }: Pick<ApiContext, 'database' | 'log'>,
  { sid, accessed }: Pick<SessionRecord, 'sid' | 'accessed'>,
  seconds = TOUCH_SECONDS,
): Promise<void> {
  if (Date.now() - accessed.getTime() < seconds * 1_000) return;
  const touch = database.db
    .update(sessions)
    .set({ accessed: sql`now()` })
    .where(
      and(
        eq(sessions.sid, sid),
        isNull(sessions.ended),
        sql`${sessions.accessed} < now() - make_interval(secs => ${seconds})`,
      ),
    );
  await writeOrLog(log, 'recording the use of a session', touch);
}

/**
 * Ends the session and cancels its jobs. Returns their ids, and the session if it was open, as its first login may be
 * under way. Of one that ended because its host was changed, the reason is erased. Throws `session_not_found`.
 */
export async function endSession(
  tx: Tx,
  key: SessionKey,
): Promise<{ jobs: string[]; closed: NamedSession | undefined }> {
  const which = or(isOwnActiveSession(tx, key), isEndedByHost(key));
  const [before] = isId(key.sid)
    ? await tx.select({ ended: sessions.ended }).from(sessions).where(which).for('update')
    : [];
  const ended = isId(key.sid) ? await endSessions(tx, which) : undefined;
  if (!ended || ended.sessions.length === 0) throw await explainNoSession(tx, key);
  const [closed] = before?.ended === null ? ended.opened : [];
  return { jobs: ended.jobs, closed };
}

export interface EndedSessions {
  /** The ids of the jobs that were cancelled. */
  jobs: string[];
  sessions: string[];
  /** The sessions that ever were open. */
  opened: NamedSession[];
}

/** Ends the sessions and cancels their jobs. */
export async function endSessions(tx: Tx, which: SQL | undefined): Promise<EndedSessions> {
  const ended = await tx
    .update(sessions)
    .set({ ended: sql`coalesce(${sessions.ended}, now())`, endReason: null })
    .where(which)
    .returning({ ...NAMED_SESSION, opened: sessions.opened });
  const sids = ended.map(({ sid }) => sid);
  const opened = ended.filter(session => session.opened !== null);
  if (sids.length === 0) return { jobs: [], sessions: [], opened };
  const isAmong = (column: typeof jobs.session | typeof leftoverRuns.session) =>
    sql`${column} = ${anyOf(sids)}`;
  // Runs of unknown outcome may still be alive: upkeep stops cancelled ones on the host.
  await tx
    .update(jobs)
    .set({ cancelRequested: sql`coalesce(${jobs.cancelRequested}, now())` })
    .where(
      and(
        isAmong(jobs.session),
        rowLeavesUnremoved,
        sql`${jobs.error} ->> 'code' = 'outcome_unknown'`,
      ),
    );
  await tx.update(leftoverRuns).set({ mayKeepRunning: false }).where(isAmong(leftoverRuns.session));
  const cancelled = await cancelJobsOf(tx, isAmong(jobs.session), { detail: SESSION_ENDED });
  return { jobs: cancelled, sessions: sids, opened };
}
