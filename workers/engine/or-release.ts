import { type JobContext, ReleaseJob } from '../context.ts';

/**
 * What `work` gives. Where it fails while the process is stopping, ReleaseJob: another worker does it anew. What the client
 * asked to end ends here all the same.
 */
export async function orRelease<T>(
  { stopping, cancel }: Pick<JobContext, 'stopping' | 'cancel'>,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (cancel.aborted) throw error instanceof ReleaseJob ? cancel.reason : error;
    throw stopping.aborted ? new ReleaseJob('the worker is stopping') : error;
  }
}
