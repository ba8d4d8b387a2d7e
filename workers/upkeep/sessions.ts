import { and, eq, isNotNull, isNull, notExists, or, type SQL, sql } from 'drizzle-orm';
import { recordAudit } from '../../shared/audit/audit.ts';
import { NAMED_SESSION, sessionTarget } from '../../shared/audit/session-target.ts';
import { anyOf } from '../../shared/database/any-of.ts';
import type { Tx } from '../../shared/database/connect.ts';
import { jobs, leftoverRuns, sessions } from '../../shared/database/schema.ts';
import { cancelJobs, publishCancelled } from '../../shared/jobs/cancel.ts';
import { CLEAN_UP, isOpenByOwner } from '../../shared/jobs/job-conditions.ts';
import { rowLeavesUnremoved } from '../../shared/jobs/run-intent.ts';
import type { WorkerContext } from '../context.ts';

type CancelContext = Pick<WorkerContext, 'database' | 'notifications'>;
type IdleContext = CancelContext & {
  config: Pick<WorkerContext['config'], 'SESSION_IDLE_TIMEOUT'>;
};

const openJobs = (context: CancelContext) =>
  context.database.db
    .select({ id: jobs.id })
    .from(jobs)
    .where(and(eq(jobs.session, sessions.sid), isNull(jobs.finished)));

const isNotChallenged = sql`coalesce(${sessions.challengeExpires} < now(), true)`;

/** Not by a request. */
const NOWHERE = { address: null, requestId: null };

/** Ends sessions idle for SESSION_IDLE_TIMEOUT since their last use and their last job's end. */
export async function endIdleSessions(context: IdleContext): Promise<void> {
  const timeout = sql`make_interval(secs => ${context.config.SESSION_IDLE_TIMEOUT})`;
  const lastEnd = sql`(select max(${jobs.finished}) from ${jobs} where ${jobs.session} = ${sessions.sid})`;
  const ended = await context.database.db.transaction(async tx => {
    const rows = await endSessions(
      tx,
      and(
        isNotNull(sessions.opened),
        isNull(sessions.ended),
        // Its user is asked for a code, and has the time that the host gives.
        isNotChallenged,
        sql`${sessions.accessed} < now() - ${timeout}`,
        sql`coalesce(${lastEnd}, ${sessions.accessed}) < now() - ${timeout}`,
        notExists(openJobs(context)),
      ),
    );
    for (const { user, ...session } of rows) {
      const target = sessionTarget(session);
      await recordAudit(tx, { ...NOWHERE, user, action: 'session.close', target });
    }
    return rows;
  });
  for (const { sid } of ended) context.notifications.publish('session', sid);
}

/** Ends sessions that were never opened: their `connect` job failed or was lost. */
export async function endUnopenedSessions(context: WorkerContext): Promise<void> {
  const isUnopened = and(
    isNull(sessions.opened),
    isNull(sessions.ended),
    notExists(openJobs(context)),
    isNotChallenged,
    sql`${sessions.created} < now() - interval '1 minute'`,
  );
  await context.database.db.transaction(tx => endSessions(tx, isUnopened));
}

/**
 * Ends the sessions of which this holds. It is looked at again under their locks: a statement that waited for one would see
 * the row as it became meanwhile, but no job that was started there. What somebody has locked is left to the next call.
 */
async function endSessions(tx: Tx, which: SQL | undefined) {
  const found = await tx
    .select({ sid: sessions.sid })
    .from(sessions)
    .where(which)
    .for('update', { skipLocked: true });
  if (found.length === 0) return [];
  return tx
    .update(sessions)
    .set({ ended: sql`now()` })
    .where(and(sql`${sessions.sid} = ${anyOf(found.map(({ sid }) => sid))}`, which))
    .returning({ ...NAMED_SESSION, user: sessions.owner });
}

const wasEnded = sql`${sessions.ended} is not null and ${sessions.endReason} is null`;

/**
 * Cancels the jobs of sessions that ended just now, because the process that ended one may have died before. For a
 * changed host their workers end them, as failed.
 */
export async function cancelJobsOfEndedSessions(context: CancelContext): Promise<void> {
  // By session, as `offset 0` has it: a join would read all open jobs. The sessions by an index for each of the two sorts.
  const itsJobs = sql`select id from ${jobs} where ${jobs.session} = ${sessions.sid}
    and ${jobs.finished} is null and ${jobs.cancelRequested} is null offset 0`;
  const found = sql`select its.id from ${sessions} cross join lateral (${itsJobs}) its
    where ${wasEnded} and (${sessions.sealed} is not null
      or ${sessions.sealed} is null and ${sessions.ended} > now() - ${CLEAN_UP})`;
  await cancelAndTell(context, sql`${jobs.id} = any(array(${found}))`);
}

/** Cancels the jobs of all ended sessions, for the time without upkeep. Reads all open jobs. */
export async function cancelJobsOfSessionsEndedBefore(context: CancelContext): Promise<void> {
  const isOfEnded = sql`exists (select 1 from ${sessions} where ${sessions.sid} = ${jobs.session} and ${wasEnded})`;
  await cancelAndTell(context, and(isOpenByOwner, isNull(jobs.cancelRequested), isOfEnded));
}

async function cancelAndTell(context: CancelContext, which: SQL | undefined): Promise<void> {
  publishCancelled(context, await cancelJobs(context.database.db, which));
}

/**
 * Erases an ended session's sealed credential once its jobs have ended and its runs are removed from the host, or 10
 * minutes after its end.
 */
export async function eraseCredentials(context: WorkerContext): Promise<void> {
  const { db } = context.database;
  const unremovedRuns = db
    .select({ id: jobs.id })
    .from(jobs)
    .where(and(eq(jobs.session, sessions.sid), rowLeavesUnremoved));
  const itsLeftoverRuns = db
    .select({ id: leftoverRuns.id })
    .from(leftoverRuns)
    .where(eq(leftoverRuns.session, sessions.sid));
  await db
    .update(sessions)
    .set({ sealed: null, answers: null })
    .where(
      and(
        isNotNull(sessions.sealed),
        isNotNull(sessions.ended),
        or(
          and(notExists(openJobs(context)), notExists(unremovedRuns), notExists(itsLeftoverRuns)),
          sql`${sessions.ended} < now() - ${CLEAN_UP}`,
        ),
      ),
    );
}
