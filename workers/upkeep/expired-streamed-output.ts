import { eq, sql } from 'drizzle-orm';
import { rowExists } from '../../shared/database/row-exists.ts';
import { chunks, jobs, segments } from '../../shared/database/schema.ts';
import { scheduleDeletion } from '../../shared/storage/pending-deletions.ts';
import type { WorkerContext } from '../context.ts';

const BATCH = 100;

/** Removes output that was streamed to a client, an hour after the end of its job. */
export async function removeExpiredStreamedOutput({
  database: { db },
}: Pick<WorkerContext, 'database'>): Promise<void> {
  const isExpired = sql`${jobs.outputStreamed} and ${jobs.stdoutBytes} > 0 and ${jobs.finished} < now() - interval '1 hour'`;
  for (;;) {
    const rows = await db.select({ id: jobs.id }).from(jobs).where(isExpired).limit(BATCH);
    for (const { id } of rows) {
      await db.transaction(async tx => {
        // The job first, as where its record is removed: its output goes with it then.
        if (!(await rowExists(tx, jobs, eq(jobs.id, id), 'update'))) return;
        const gone = await tx.delete(segments).where(eq(segments.job, id)).returning();
        const objects = gone.map(segment => segment.object);
        await scheduleDeletion(tx, objects);
        await tx.delete(chunks).where(eq(chunks.job, id));
        await tx.update(jobs).set({ stdoutBytes: 0 }).where(eq(jobs.id, id));
      });
    }
    if (rows.length < BATCH) return;
  }
}
