import { stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import type { SpriteTiles } from '../../shared/jobs/catalog.ts';
import { newObjectKey } from '../../shared/jobs/object-keys.ts';
import { assertUserStorage } from '../../shared/user-storage.ts';
import type { JobContext } from '../context.ts';
import { OBJECT_STORE, retry } from '../engine/retry.ts';
import { storeScratch } from '../sandbox/scratch-dir.ts';
import { DEFAULT_FPS } from './ffmpeg-arguments.ts';
import { findFfmpeg } from './find-ffmpeg.ts';
import type { Size } from './frame-info.ts';
import { makeStills } from './stills.ts';
import { videoLimits } from './video-limits.ts';

export interface StoredVideo {
  bytes: number;
  /** Objects. */
  poster?: string;
  sprite?: string;
  tiles?: SpriteTiles;
}

/** Stores a finished video of the scratch folder under the key `object`, and stills of it, which are made meanwhile. */
export async function storeVideo(
  context: JobContext<'video'>,
  { path, object, frames, size }: { path: string; object: string; frames: number; size: Size },
): Promise<StoredVideo> {
  const { worker, payload, job, signal } = context;
  context.progress(0.99, 'storing the video');
  const { size: bytes } = await stat(path);
  const limit = worker.config.LIMIT_USER_BYTES;
  await assertUserStorage(worker.database.db, { user: job.owner, added: bytes, limit });
  const store = (key: string, file: string) =>
    retry(() => storeScratch(worker.objects, key, { path: file, signal }), {
      ...OBJECT_STORE,
      signal,
      onWait: () => context.progress(0.99, 'storing the video: waiting for the object store'),
    });
  const storeStills = async () => {
    const stills = await makeStills({
      ffmpeg: await findFfmpeg(),
      directory: dirname(path),
      name: basename(path),
      type: payload.type,
      size,
      frames,
      fps: payload.fps ?? DEFAULT_FPS,
      limits: videoLimits(worker.config),
      signal,
    });
    if (!stills) {
      context.log.warn('no stills of the video: ffmpeg could not read it');
      return {};
    }
    const poster = newObjectKey('videos', job.id);
    const sprite = newObjectKey('videos', job.id);
    await Promise.all([store(poster, stills.poster), store(sprite, stills.sprite)]);
    return { poster, sprite, tiles: stills.tiles };
  };
  const [stored, stills] = await Promise.allSettled([store(object, path), storeStills()]);
  if (stored.status === 'rejected') throw stored.reason;
  if (stills.status === 'rejected') throw stills.reason;
  return { bytes, ...stills.value };
}
