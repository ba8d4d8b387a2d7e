import { eq } from 'drizzle-orm';
import { jobs } from '../../shared/database/schema.ts';
import type { JobContext } from '../context.ts';

/** Removes a run from its host once the job's end is committed; what fails here the session pool does later. */
export async function forgetRun({
  job,
  worker,
}: Pick<JobContext, 'job' | 'worker'>): Promise<void> {
  const { db } = worker.database;
  const [row] = await db
    .select({ forgotten: jobs.runForgotten })
    .from(jobs)
    .where(eq(jobs.id, job.id));
  if (!job.runAt || !row || row.forgotten) return;
  await worker.sessions.use(job.session ?? '', AbortSignal.timeout(30_000), async session =>
    (await session.agent()).forget(job.id),
  );
  await db.update(jobs).set({ runForgotten: true }).where(eq(jobs.id, job.id));
}
