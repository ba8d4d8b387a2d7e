import { stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { newObjectKey } from '../../shared/jobs/object-keys.ts';
import type { SpriteTiles } from '../../shared/jobs/payloads/video.ts';
import { assertUserStorage } from '../../shared/quotas/user-storage.ts';
import type { JobContext } from '../context.ts';
import { OBJECT_STORE, retry } from '../engine/retry.ts';
import { type ScratchFile, storeScratch } from '../sandbox/scratch-dir.ts';
import { findFfmpeg } from './find-ffmpeg.ts';
import type { Size } from './frame-info.ts';
import { makeStills } from './stills.ts';
import { videoLimits } from './video-limits.ts';

export interface StoredVideo {
  bytes: number;
  /** The bytes of the video and its stills. */
  stored: number;
  /** The keys of the stills. */
  poster?: string;
  sprite?: string;
  tiles?: SpriteTiles;
}

/** A finished video in the scratch directory. */
export interface ScratchVideo {
  video: ScratchFile;
  /** The stills that were made with the video. */
  stills?: { poster: ScratchFile; sprite: ScratchFile; tiles: SpriteTiles };
  frames: number;
  size: Size;
}

/** Stores a video under the key `object`, and its stills, which are made meanwhile if missing. */
export async function storeVideo(
  context: JobContext<'video'>,
  { object, video, stills: made, frames, size }: ScratchVideo & { object: string },
): Promise<StoredVideo> {
  const { worker, job, signal } = context;
  context.progress(0.99, 'storing the video');
  const assertRoom = async (added: number) => {
    const limit = worker.config.LIMIT_USER_BYTES;
    await assertUserStorage(worker.database.db, { user: job.owner, added, limit });
  };
  const bytes = await sizeOf(video);
  await assertRoom(bytes);
  const keys: string[] = [];
  const store = (key: string, file: ScratchFile) => {
    keys.push(key);
    return retry(() => storeScratch(worker.objects, key, { ...file, signal }), {
      ...OBJECT_STORE,
      signal,
      onWait: () => context.progress(0.99, 'storing the video: waiting for the object store'),
    });
  };
  const storeStills = async () => {
    const stills = made ?? (await makeMissing(context, { path: video.path, frames, size }));
    if (!stills) return { stored: bytes };
    const stored = bytes + (await sizeOf(stills.poster)) + (await sizeOf(stills.sprite));
    await assertRoom(stored);
    const poster = newObjectKey('videos', job.id);
    const sprite = newObjectKey('videos', job.id);
    await Promise.all([store(poster, stills.poster), store(sprite, stills.sprite)]);
    return { stored, poster, sprite, tiles: stills.tiles };
  };
  const [stored, stills] = await Promise.allSettled([store(object, video), storeStills()]);
  if (stored.status === 'fulfilled' && stills.status === 'fulfilled')
    return { bytes, ...stills.value };
  // Nothing refers to the others.
  for (const key of keys) await worker.objects.remove(key).catch(() => {});
  throw stored.status === 'rejected' ? stored.reason : (stills as PromiseRejectedResult).reason;
}

const sizeOf = async ({ path, part }: ScratchFile) => part?.bytes ?? (await stat(path)).size;

async function makeMissing(
  context: JobContext<'video'>,
  { path, frames, size }: { path: string; frames: number; size: Size },
): Promise<ScratchVideo['stills']> {
  const { worker, payload, signal } = context;
  const stills = await makeStills({
    ffmpeg: await findFfmpeg(),
    directory: dirname(path),
    name: basename(path),
    type: payload.type,
    size,
    frames,
    fps: payload.fps,
    limits: videoLimits(worker.config),
    signal,
  });
  if (!stills) {
    context.log.warn('no stills of the video: ffmpeg could not read it');
    return undefined;
  }
  const { poster, sprite, tiles } = stills;
  return { poster: { path: poster }, sprite: { path: sprite }, tiles };
}
