import { join } from 'node:path';
import { and, eq } from 'drizzle-orm';
import { LRUCache } from 'lru-cache';
import { jobs } from '../../../shared/database/schema.ts';
import { JOBS } from '../../../shared/jobs/catalog.ts';
import { isOpenById } from '../../../shared/jobs/job-conditions.ts';
import { newObjectKey } from '../../../shared/jobs/object-keys.ts';
import type { WorkerContext } from '../../context.ts';
import type { SpareSlots } from '../../engine/spare-slots.ts';
import { storeScratch, withScratch } from '../../sandbox/scratch-dir.ts';
import { recallFrames } from '../choose-frames.ts';
import { findFfmpegVersion } from '../find-ffmpeg.ts';
import { videoLimits } from '../video-limits.ts';
import { encodeSegment } from './encode-segment.ts';
import { Segment } from './segment.ts';
import { finishSegment, giveBackSegment, type TakenSegment, takeSegment } from './segment-rows.ts';

/** Jobs remembered that this worker could not help with, for instance without a way to their hosts. */
const MAX_FAILED = 1_000;
/** Milliseconds without an encoded frame, or three times VIDEO_SHARE_SECONDS if longer, after which a helper gives up. */
const STALLED_MS = 10_000;
const LOOK_MS = 1_000;

/**
 * Encodes segments of other workers' videos in slots that no job needs (decision 57). Failures here are ignored: the
 * worker of the job encodes the segment itself, and meets what is wrong with it.
 */
export function helpWithVideos(worker: WorkerContext, slots: SpareSlots): () => Promise<void> {
  const failed = new LRUCache<string, true>({ max: MAX_FAILED });
  let looking = false;
  const helping = new Set<Promise<void>>();

  async function help(signal: AbortSignal): Promise<void> {
    const { config, database, log } = worker;
    const ffmpeg = await findFfmpegVersion();
    const seconds = config.VIDEO_SHARE_SECONDS;
    const except = [...failed.keys()];
    const taken = await takeSegment(database.db, { worker: worker.id, ffmpeg, seconds, except });
    looking = false;
    if (!taken) return;
    const { job, start, until } = taken;
    log.debug({ job, start, until }, 'helps with a video');
    await encodeTaken(worker, taken, signal).catch(async (err: unknown) => {
      const refused = !signal.aborted;
      if (refused) failed.set(job, true);
      log.info({ err, job, start, until }, 'a segment of a video is given back');
      await giveBackSegment(database.db, taken, { refused });
    });
    worker.notifications.publish('segment', job);
  }

  function look(job: string): void {
    if (looking || failed.has(job) || !slots.isFree || worker.stopping.aborted) return;
    looking = true;
    const done = slots
      .borrow(help)
      .catch((err: unknown) => worker.log.warn({ err, job }, 'could not help with a video'))
      .finally(() => {
        looking = false;
        helping.delete(done);
      });
    helping.add(done);
  }

  const { VIDEO_SHARE_SECONDS } = worker.config;
  const unsubscribe = VIDEO_SHARE_SECONDS > 0 ? worker.notifications.on('segment', look) : () => {};
  return async () => {
    unsubscribe();
    await Promise.allSettled(helping);
  };
}

async function encodeTaken(
  worker: WorkerContext,
  taken: TakenSegment,
  signal: AbortSignal,
): Promise<void> {
  const { config, database, objects, sessions } = worker;
  const segment = new Segment(worker, taken);
  segment.hold(taken);
  const stalled = new AbortController();
  const ended = AbortSignal.any([signal, segment.revoked, stalled.signal]);
  const stalledMs = Math.max(STALLED_MS, 3_000 * config.VIDEO_SHARE_SECONDS);
  const watching = watchProgress(segment, stalledMs, () =>
    stalled.abort(new Error('it stands still')),
  );
  try {
    const isWanted = and(eq(jobs.id, taken.job), eq(jobs.leaseToken, taken.attempt), isOpenById);
    const [job] = await database.db.select().from(jobs).where(isWanted);
    if (!job?.session) return;
    const { session: sid } = job;
    const payload = JOBS.video.payload.parse(job.payload);
    const frames = await recallFrames(database.db, { job: job.id, payload });
    await withScratch('video', async directory => {
      const path = join(directory, 'segment');
      await sessions.use(sid, ended, session =>
        encodeSegment({
          session,
          payload,
          frames,
          segment,
          outputPath: path,
          limits: videoLimits(config),
          signal: ended,
        }),
      );
      const object = newObjectKey('videos', job.id);
      await storeScratch(objects, object, { path, signal: ended });
      if (!(await finishSegment(database.db, taken, object))) await objects.remove(object);
    });
  } finally {
    clearInterval(watching);
    segment.close();
  }
}

/**
 * Calls back if no frame is encoded for `forMs`: a host or ffmpeg may hang silently, and the worker of the job would
 * wait for a live helper.
 */
function watchProgress(segment: Segment, forMs: number, onStalled: () => void): NodeJS.Timeout {
  let { done } = segment;
  let since = performance.now();
  return setInterval(() => {
    if (segment.done === done && done < segment.length) {
      if (performance.now() - since > forMs) onStalled();
      return;
    }
    done = segment.done;
    since = performance.now();
  }, LOOK_MS);
}
