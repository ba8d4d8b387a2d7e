import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { JobContext } from '../context.ts';
import { OBJECT_STORE, retry } from '../engine/retry.ts';
import { withScratch } from '../sandbox/scratch-dir.ts';
import { withSession } from '../ssh/reconnect.ts';
import { encodeVideo } from './encode-video.ts';
import { frameStreamScript, openFrameStream } from './frame-stream.ts';
import { readFrames } from './read-frames.ts';

/** Encodes the video in this worker, stores it under the key `object`, and returns its size in bytes. */
export async function encodeInWorker(
  context: JobContext<'video'>,
  object: string,
): Promise<number> {
  return withScratch('video', directory => encodeIn(directory, context, object));
}

async function encodeIn(
  directory: string,
  context: JobContext<'video'>,
  object: string,
): Promise<number> {
  const { payload, worker, signal } = context;
  const outputPath = join(directory, 'video');
  await withSession(context, async session => {
    const stdout = await openFrameStream(
      session,
      frameStreamScript({ images: payload.images }),
      signal,
    );
    await encodeVideo({
      ...payload,
      frames: readFrames(stdout, { images: payload.images, signal }),
      total: payload.images.length,
      outputPath,
      onProgress: share => context.progress(share * 0.98, 'Encoding.'),
      signal,
    });
  });
  const { size } = await stat(outputPath);
  return retry(() => worker.objects.put(object, createReadStream(outputPath), { size, signal }), {
    ...OBJECT_STORE,
    signal,
    onWait: () => context.progress(0.99, 'Waiting for the object store.'),
  });
}
