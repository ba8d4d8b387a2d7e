import { and, eq, sql } from 'drizzle-orm';
import { jobs } from '../../shared/database/schema.ts';
import { QUEUES } from '../../shared/jobs/catalog.ts';
import { isPausedTooFar, isWaiting } from '../../shared/jobs/job-conditions.ts';
import type { WorkerContext } from '../context.ts';

/** Rows that one statement writes. */
const BATCH = 5_000;

/** Makes due what would wait for longer than any pause lasts: the clock of the database was set back. */
export async function endFarPauses({ database }: Pick<WorkerContext, 'database'>): Promise<void> {
  const { db } = database;
  for (const queue of QUEUES) {
    const isFar = and(eq(jobs.queue, queue), isWaiting, isPausedTooFar);
    const far = db
      .select({ id: jobs.id })
      .from(jobs)
      .where(isFar)
      .limit(BATCH)
      .for('update', { skipLocked: true });
    await db
      .update(jobs)
      .set({ notBefore: sql`now()` })
      .where(and(sql`${jobs.id} = any(array(${far}))`, isWaiting));
  }
}
