import { createReadStream } from 'node:fs';
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type JobContext, LetGo } from '../context.ts';
import { outlastStore } from '../outlast-store.ts';
import { whileConnected } from '../remote/while-connected.ts';
import { encodeVideo } from './encode-worker.ts';
import { openTransfer } from './look-at-frames.ts';
import { readFrames } from './read-frames.ts';
import { transferScript } from './transfer.ts';

const PREFIX = 'windlass-video-';

/** Makes the video in this worker, stores it under the key, and returns its size in bytes. */
export async function encodeHere(context: JobContext<'video'>, object: string): Promise<number> {
  const { payload, worker, over } = context;
  await removeLeftovers();
  const directory = await mkdtemp(join(tmpdir(), `${PREFIX}${process.pid}-`));
  const outputPath = join(directory, 'video');
  try {
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
    return await outlastStore(
      () => worker.objects.put(object, createReadStream(outputPath), { size, signal: over }),
      { over, onWait: () => context.progress(0.99, 'Waiting for the object store.') },
    );
  } catch (error) {
    if (context.stopping.aborted) throw new LetGo('the worker is stopping');
    throw error;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Folders of workers that died while they encoded. */
async function removeLeftovers(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const pid = new RegExp(`^${PREFIX}(\\d+)-`).exec(name)?.[1];
    if (pid && !isAlive(Number(pid)))
      await rm(join(tmpdir(), name), { recursive: true, force: true }).catch(() => {});
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
