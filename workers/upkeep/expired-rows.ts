import { and, lt, sql } from 'drizzle-orm';
import { windowBegin } from '../../shared/database/failed-login-window.ts';
import {
  failedLogins,
  idempotencyKeys,
  jobs,
  leases,
  logins,
  spentOidcStates,
  tokens,
  videoFrames,
  videoSegments,
  workers,
} from '../../shared/database/schema.ts';
import { hasSlot } from '../../shared/jobs/job-conditions.ts';
import { scheduleDeletion } from '../../shared/storage/pending-deletions.ts';
import type { WorkerContext } from '../context.ts';
import { removeRows } from './remove-in-batches.ts';

type Context = Pick<WorkerContext, 'database'>;
type BatchContext = Pick<WorkerContext, 'database' | 'stopping'>;

/** Removes workers whose heartbeat stopped an hour ago. */
export async function removeDeadWorkers({ database: { db } }: Context): Promise<void> {
  await db.delete(workers).where(lt(workers.seen, sql`now() - interval '1 hour'`));
  const isUnused = sql`not exists (select from ${workers} where ${workers.id} = ${leases.worker})
    and not exists (select from ${jobs} where ${jobs.worker} = ${leases.worker} and ${hasSlot})`;
  await db
    .delete(leases)
    .where(and(sql`${leases.expires} < clock() - interval '1 hour'`, isUnused));
}

/** The frames of videos that are made, or never will be. */
export async function removeFramesOfEndedVideos({ database: { db } }: Context): Promise<void> {
  const ended = sql`exists (select from ${jobs} where ${jobs.id} = ${videoFrames.job} and ${jobs.finished} is not null)`;
  await db.delete(videoFrames).where(ended);
}

/** What a video's last worker could not remove: its job has ended without it. */
export async function removeSegmentsOfEndedVideos({ database: { db } }: Context): Promise<void> {
  const ended = sql`exists (select from ${jobs} where ${jobs.id} = ${videoSegments.job} and ${jobs.finished} is not null)`;
  await db.transaction(async tx => {
    const gone = await tx
      .delete(videoSegments)
      .where(ended)
      .returning({ object: videoSegments.object });
    await scheduleDeletion(
      tx,
      gone.map(row => row.object),
    );
  });
}

export async function removeExpiredIdempotencyKeys(context: BatchContext): Promise<void> {
  const isExpired = lt(idempotencyKeys.created, sql`now() - interval '24 hours'`);
  await removeRows(context, idempotencyKeys, isExpired);
}

/** Longer than any request's body takes: at its end identifyLateSender() asks whether its login or token had ended. */
const KEPT = sql`now() - interval '1 day'`;

/** Removes logins, tokens, login states and counts of failed logins that have expired. */
export async function removeExpiredLogins(context: BatchContext): Promise<void> {
  await removeRows(context, logins, lt(logins.expires, KEPT));
  await removeRows(context, tokens, lt(tokens.expires, KEPT));
  await removeRows(context, spentOidcStates, lt(spentOidcStates.expires, sql`now()`));
  await removeRows(context, failedLogins, lt(failedLogins.began, windowBegin));
}
