import { limitTime } from '../../shared/process/limit-time.ts';
import type { JobContext } from '../context.ts';
import { tooSlow, videoLimits } from './video-limits.ts';

type VideoContext = JobContext<'video'>;

/**
 * Gives what is asked of a host about a video as long as its encoding has: a disk that hangs must not keep the slot. Throws
 * `time_limit`. Not for a run on the host, which somebody would have to stop.
 */
export async function limitLook<T>(
  context: VideoContext,
  look: (context: VideoContext) => Promise<T>,
): Promise<T> {
  const { seconds } = videoLimits(context.worker.config);
  let limited: AbortSignal | undefined;
  return limitTime(context.signal, seconds * 1_000, signal => {
    limited = signal;
    return look({ ...context, signal });
  }).catch((error: unknown) => {
    throw limited?.aborted && !context.signal.aborted ? tooSlow(seconds) : error;
  });
}
