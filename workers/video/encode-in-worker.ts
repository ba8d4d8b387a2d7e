import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { JobContext } from '../context.ts';
import { orRelease } from '../engine/or-release.ts';
import { OBJECT_STORE, retry } from '../engine/retry.ts';
import { withScratch } from '../sandbox/scratch-dir.ts';
import { withSession } from '../ssh/reconnect.ts';
import { encodeVideo } from './encode-video.ts';
import { openTransfer } from './inspect-frames.ts';
import { readFrames } from './read-frames.ts';
import { transferScript } from './transfer.ts';

/** Makes the video in this worker, stores it under the key, and returns its size in bytes. */
export async function encodeInWorker(
  context: JobContext<'video'>,
  object: string,
): Promise<number> {
  return orRelease(context, () =>
    withScratch('video', directory => encodeIn(directory, context, object)),
  );
}

async function encodeIn(
  directory: string,
  context: JobContext<'video'>,
  object: string,
): Promise<number> {
  const { payload, worker, over } = context;
  const outputPath = join(directory, 'video');
  await withSession(context, async session => {
    const stdout = await openTransfer(session, transferScript({ images: payload.images }), over);
    await encodeVideo({
      ...payload,
      frames: readFrames(stdout, { images: payload.images, signal: over }),
      total: payload.images.length,
      outputPath,
      onProgress: share => context.progress(share * 0.98, 'Encoding.'),
      signal: over,
    });
  });
  const { size } = await stat(outputPath);
  return retry(
    () => worker.objects.put(object, createReadStream(outputPath), { size, signal: over }),
    {
      ...OBJECT_STORE,
      signal: over,
      onWait: () => context.progress(0.99, 'Waiting for the object store.'),
    },
  );
}
