import type { JobContext } from '../context.ts';
import { withScratch } from '../sandbox/scratch-dir.ts';
import type { Frame } from './frame-validator.ts';
import { encodeSplitVideo } from './segments/encode-split-video.ts';
import { type StoredVideo, storeVideo } from './store-video.ts';

/** Encodes the video in this worker, with help from idle ones, and stores it under the key `object`. */
export function encodeInWorker(
  context: JobContext<'video'>,
  { object, ...video }: { object: string; frames: readonly Frame[]; decodeAll?: boolean },
): Promise<StoredVideo> {
  return withScratch('video', async directory =>
    storeVideo(context, { object, ...(await encodeSplitVideo(context, { ...video, directory })) }),
  );
}
