import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { JobContext } from '../context.ts';
import { orLetGo } from '../or-let-go.ts';
import { outlastStore } from '../outlast-store.ts';
import { whileConnected } from '../remote/while-connected.ts';
import { withScratch } from '../scratch.ts';
import { encodeVideo } from './encode-worker.ts';
import { openTransfer } from './look-at-frames.ts';
import { readFrames } from './read-frames.ts';
import { transferScript } from './transfer.ts';

/** Makes the video in this worker, stores it under the key, and returns its size in bytes. */
export async function encodeHere(context: JobContext<'video'>, object: string): Promise<number> {
  return orLetGo(context, () =>
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
  await whileConnected(context, async session => {
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
  return outlastStore(
    () => worker.objects.put(object, createReadStream(outputPath), { size, signal: over }),
    { over, onWait: () => context.progress(0.99, 'Waiting for the object store.') },
  );
}
