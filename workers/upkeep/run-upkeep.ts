import { and, eq, isNotNull, isNull, lt, notExists, or, sql } from 'drizzle-orm';
import { sleep } from '../../shared/abort.ts';
import { idempotencyKeys, jobs, sessions, workers } from '../../shared/database/schema.ts';
import { publishCancelled, requestCancel } from '../../shared/jobs/cancel.ts';
import type { WorkerContext } from '../context.ts';
import { purgeDeletedProjects } from './deleted-projects.ts';
import { removeOldLogins } from './expired-logins.ts';
import { removeExpiredStreamedOutput } from './expired-streamed-output.ts';
import { endIdleUploads } from './idle-uploads.ts';
import { OrphanedObjects } from './orphaned-objects.ts';
import { deletePendingObjects } from './pending-deletions.ts';
import { removeUnusedViews } from './unused-views.ts';

const ROUND_MS = 5_000;
/** How long the sealed credential of an ended session may be kept for cleaning up on its host. */
const CLEAN_UP = sql`interval '10 minutes'`;

/** Ends what has timed out and removes what nobody can ask for any more. Every step is safe to race and to repeat. */
export async function runUpkeep(context: WorkerContext): Promise<void> {
  const oldObjects = new OrphanedObjects(context);
  for (let round = 0; !context.stopping.aborted; round++) {
    try {
      await endIdleSessions(context);
      await eraseCredentials(context);
      await cancelStrayJobs(context);
      await forgetDeadWorkers(context);
      await purgeDeletedProjects(context);
      await endIdleUploads(context);
      await deletePendingObjects(context);
      await oldObjects.look();
      if (round % 60 === 0) {
        await removeOldKeys(context);
        await removeOldLogins(context);
        await removeExpiredStreamedOutput(context);
        await removeUnusedViews(context);
      }
    } catch (error) {
      context.log.warn({ err: error }, 'upkeep was interrupted');
    }
    await sleep(context.stopping, ROUND_MS);
  }
}

const openJobs = (context: WorkerContext) =>
  context.database.db
    .select({ id: jobs.id })
    .from(jobs)
    .where(and(eq(jobs.session, sessions.sid), isNull(jobs.finished)));

/** A session ends when idle past its time-out, since the later of its last use and the end of its last job. */
async function endIdleSessions(context: WorkerContext): Promise<void> {
  const timeout = sql`make_interval(secs => ${context.config.SESSION_IDLE_TIMEOUT})`;
  const lastEnd = sql`(select max(${jobs.finished}) from ${jobs} where ${jobs.session} = ${sessions.sid})`;
  const ended = await context.database.db
    .update(sessions)
    .set({ ended: sql`now()` })
    .where(
      and(
        isNull(sessions.ended),
        sql`${sessions.accessed} < now() - ${timeout}`,
        sql`coalesce(${lastEnd}, ${sessions.accessed}) < now() - ${timeout}`,
        notExists(openJobs(context)),
      ),
    )
    .returning({ sid: sessions.sid });
  for (const { sid } of ended) context.notifications.publish('session', sid);
}

/** The sealed credential goes once the ended session's jobs are stopped and cleaned up on the host, or after 10 minutes. */
async function eraseCredentials(context: WorkerContext): Promise<void> {
  const { db } = context.database;
  // A session that was never opened, whose connect job has ended without success or was lost, never was one.
  await db
    .update(sessions)
    .set({ ended: sql`now()` })
    .where(
      and(
        isNull(sessions.opened),
        isNull(sessions.ended),
        notExists(openJobs(context)),
        sql`${sessions.created} < now() - interval '1 minute'`,
      ),
    );
  const unforgotten = db
    .select({ id: jobs.id })
    .from(jobs)
    .where(and(eq(jobs.session, sessions.sid), isNotNull(jobs.runAt), eq(jobs.runRemoved, false)));
  await db
    .update(sessions)
    .set({ sealed: null })
    .where(
      and(
        isNotNull(sessions.sealed),
        isNotNull(sessions.ended),
        or(
          and(notExists(openJobs(context)), notExists(unforgotten)),
          sql`${sessions.ended} < now() - ${CLEAN_UP}`,
        ),
      ),
    );
}

/** Whoever opened a session may have been cut off before its jobs were asked to end. */
export async function cancelStrayJobs(
  context: Pick<WorkerContext, 'database' | 'notifications'>,
): Promise<void> {
  const stray = await requestCancel(
    context.database.db,
    and(
      isNull(jobs.cancelRequested),
      sql`exists (select 1 from ${sessions} where ${sessions.sid} = ${jobs.session} and ${sessions.ended} is not null)`,
    ),
  );
  publishCancelled(context, stray);
}

async function forgetDeadWorkers(context: WorkerContext): Promise<void> {
  await context.database.db.delete(workers).where(lt(workers.seen, sql`now() - interval '1 hour'`));
}

async function removeOldKeys(context: WorkerContext): Promise<void> {
  await context.database.db
    .delete(idempotencyKeys)
    .where(lt(idempotencyKeys.created, sql`now() - interval '24 hours'`));
}
