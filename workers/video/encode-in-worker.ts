import { join } from 'node:path';
import type { JobContext } from '../context.ts';
import { OBJECT_STORE, retry } from '../engine/retry.ts';
import { storeScratch, withScratch } from '../sandbox/scratch-dir.ts';
import { withSession } from '../ssh/reconnect.ts';
import { encodeVideo } from './encode-video.ts';
import { frameStreamScript, openFrameStream } from './frame-stream.ts';
import type { Place } from './frame-validator.ts';
import { readFrames } from './read-frames.ts';
import { videoLimits } from './video-limits.ts';

/** Encodes the video in this worker, stores it under the key `object`, and returns its size in bytes. */
export function encodeInWorker(
  context: JobContext<'video'>,
  { object, frames, decodeAll }: { object: string; frames: readonly Place[]; decodeAll?: boolean },
): Promise<number> {
  const { payload, worker, signal } = context;
  return withScratch('video', async directory => {
    const outputPath = join(directory, 'video');
    await withSession(context, async session => {
      const stdout = await openFrameStream(session, frameStreamScript({ frames }), signal);
      await encodeVideo({
        ...payload,
        frames: readFrames(stdout, { frames, signal }),
        total: frames.length,
        outputPath,
        limits: videoLimits(worker.config),
        onProgress: share => context.progress(share * 0.98, describeEncoding(share, frames)),
        signal,
        decodeAll,
      });
    });
    context.progress(0.99, 'storing the video');
    const store = () => storeScratch(worker.objects, object, { path: outputPath, signal });
    return retry(store, {
      ...OBJECT_STORE,
      signal,
      onWait: () => context.progress(0.99, 'storing the video: waiting for the object store'),
    });
  });
}

/** What is said of a video that is being encoded. */
export const describeEncoding = (share: number, { length }: { length: number }) =>
  `encoding: ${Math.round(share * length)} of ${length} frames`;
