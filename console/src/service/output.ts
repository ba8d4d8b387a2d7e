import { type FollowOptions, type JobEvent, unwrap } from '@windlass/client';
import { windlass } from './client.ts';

/** What a job prints and becomes, as it comes, over any number of connections. */
export const followJob = (job: string, options: FollowOptions): AsyncGenerator<JobEvent> =>
  windlass.follow(job, options).events();

/** Bytes of what a job has printed, once more. */
export async function readOutput(
  job: string,
  query: { stream: 'stdout' | 'stderr'; offset: number; limit: number },
  signal: AbortSignal,
): Promise<Uint8Array> {
  const params = { path: { id: job }, query };
  const asking = windlass.api.GET('/api/jobs/{id}/output', {
    params,
    signal,
    parseAs: 'arrayBuffer',
  });
  return new Uint8Array((await unwrap(asking)) as ArrayBuffer);
}
