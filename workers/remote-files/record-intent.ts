import type { JobContext } from '../context.ts';

/**
 * Commits, under the lease, that the job is about to change a file of its host. By `runAt` a later try knows that the
 * change may have been made. runRemoved: the host keeps nothing of it that must be removed.
 */
export async function recordIntent({ job, update, assertLeased }: JobContext): Promise<void> {
  if (!job.runAt) await update({ runAt: new Date(), runRemoved: true });
  await assertLeased();
}
