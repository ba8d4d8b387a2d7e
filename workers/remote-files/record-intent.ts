import type { JobContext } from '../context.ts';

/**
 * Records that the job is about to change a file of its host, and that it is still this worker's. A later try, by whatever
 * worker, reads from `runAt` that the change may have been made; nothing of it is to be removed from the host.
 */
export async function recordIntent({ job, update, assertLeased }: JobContext): Promise<void> {
  if (!job.runAt) {
    const intent = { runAt: new Date(), runRemoved: true };
    await update(intent);
    Object.assign(job, intent);
  }
  await assertLeased();
}
