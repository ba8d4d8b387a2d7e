import { limitTime } from '../../shared/process/limit-time.ts';
import type { JobContext } from '../context.ts';
import { tooSlow, videoLimits } from './video-limits.ts';

type VideoContext = JobContext<'video'>;

/**
 * Limits the inspection of frames to the time of the encoding, so that a hanging disk does not keep the slot. Throws
 * `time_limit`. Not for a run on the host, which would have to be stopped.
 */
export async function limitInspection<T>(
  context: VideoContext,
  inspect: (context: VideoContext) => Promise<T>,
): Promise<T> {
  const { seconds } = videoLimits(context.worker.config);
  let limited: AbortSignal | undefined;
  return limitTime(context.signal, seconds * 1_000, signal => {
    limited = signal;
    return inspect({ ...context, signal });
  }).catch((error: unknown) => {
    throw limited?.aborted && !context.signal.aborted ? tooSlow(seconds) : error;
  });
}
