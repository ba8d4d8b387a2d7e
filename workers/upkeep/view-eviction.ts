import { and, eq, inArray, isNull, lt, notExists, or, sql } from 'drizzle-orm';
import type { Tx } from '../../shared/database/connect.ts';
import { artifacts, jobs, views } from '../../shared/database/schema.ts';
import { cancelJobs, publishCancelled } from '../../shared/jobs/cancel.ts';
import { isOpenById } from '../../shared/jobs/job-conditions.ts';
import { scheduleDeletion } from '../../shared/storage/pending-deletions.ts';
import type { WorkerContext } from '../context.ts';

const BATCH = 200;

/** Evicts table views that nobody used for a day, or whose table was removed. */
export async function evictUnusedViews(context: WorkerContext): Promise<void> {
  for (;;) {
    const { removed, cancelled } = await context.database.db.transaction(evictSome);
    publishCancelled(context, cancelled);
    if (removed < BATCH) return;
  }
}

async function evictSome(tx: Tx): Promise<{ removed: number; cancelled: string[] }> {
  const source = tx
    .select({ object: artifacts.object })
    .from(artifacts)
    .where(eq(artifacts.object, views.source));
  const open = tx
    .select({ id: jobs.id })
    .from(jobs)
    .where(and(eq(jobs.id, views.job), isOpenById));
  const rows = await tx
    .select({ id: views.id, job: views.job, object: views.object })
    .from(views)
    .where(
      or(notExists(source), and(lt(views.used, sql`now() - interval '1 day'`), notExists(open))),
    )
    .limit(BATCH)
    .for('update', { skipLocked: true });
  const makers = rows.map(row => row.job);
  const ids = rows.map(row => row.id);
  const objects = rows.map(row => row.object);
  const isUncancelled = isNull(jobs.cancelRequested);
  const cancelled = await cancelJobs(tx, and(inArray(jobs.id, makers), isUncancelled));
  await tx.delete(views).where(inArray(views.id, ids));
  await scheduleDeletion(tx, objects);
  return { removed: rows.length, cancelled };
}
