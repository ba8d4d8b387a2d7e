import type { JobContext } from '../context.ts';

/** Removes a run from its host, soon, once the job's end is committed; what fails here the session pool does later. */
export async function forgetRun({
  job,
  worker,
}: Pick<JobContext, 'job' | 'worker'>): Promise<void> {
  if (job.runAt && !job.runRemoved) worker.sessions.forgetSoon(job.session ?? '', job.id);
}
