import { join } from 'node:path';
import type { JobContext } from '../context.ts';
import { withScratch } from '../sandbox/scratch-dir.ts';
import { withSession } from '../ssh/reconnect.ts';
import { encodeVideo } from './encode-video.ts';
import { planLabels } from './frame-labels.ts';
import { frameStreamScript, openFrameStream } from './frame-stream.ts';
import type { Place } from './frame-validator.ts';
import { readFrames } from './read-frames.ts';
import { type StoredVideo, storeVideo } from './store-video.ts';
import { videoLimits } from './video-limits.ts';

/** Encodes the video in this worker, and stores it under the key `object`. */
export function encodeInWorker(
  context: JobContext<'video'>,
  { object, frames, decodeAll }: { object: string; frames: readonly Place[]; decodeAll?: boolean },
): Promise<StoredVideo> {
  const { payload, worker, signal } = context;
  return withScratch('video', async directory => {
    const outputPath = join(directory, 'video');
    const stillPaths = {
      poster: join(directory, 'poster.jpg'),
      sprite: join(directory, 'sprite.jpg'),
    };
    const { tiles, ...size } = await withSession(context, async session => {
      const stdout = await openFrameStream(session, frameStreamScript({ frames }), signal);
      return encodeVideo({
        ...payload,
        frames: readFrames(stdout, { frames, signal }),
        total: frames.length,
        outputPath,
        stillPaths,
        limits: videoLimits(worker.config),
        onProgress: share => context.progress(share * 0.98, describeEncoding(share, frames)),
        signal,
        decodeAll,
        labelsFor: size => payload.label && planLabels(payload.label, frames, size),
      });
    });
    return storeVideo(context, {
      video: { path: outputPath },
      stills: tiles && {
        poster: { path: stillPaths.poster },
        sprite: { path: stillPaths.sprite },
        tiles,
      },
      ...{ object, frames: frames.length, size },
    });
  });
}

/** What is said of a video that is being encoded. */
export const describeEncoding = (share: number, { length }: { length: number }) =>
  `encoding: ${Math.round(share * length)} of ${length} frames`;
