import { and, eq, isNull } from 'drizzle-orm';
import { putCacheEntry } from '../../shared/cache-entry.ts';
import type { Tx } from '../../shared/database/connect.ts';
import { rowExists } from '../../shared/database/row-exists.ts';
import { projects } from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors.ts';
import { newObjectKey } from '../../shared/jobs/object-keys.ts';
import type { Handler } from '../context.ts';
import { encodeInWorker } from '../video/encode-in-worker.ts';
import { encodeOnHost, findHostEncoder } from '../video/encode-on-host.ts';
import { inspectFirstFrame } from '../video/inspect-frames.ts';

/**
 * Makes a video on the host if its ffmpeg can and the frames are of one kind, otherwise in this worker, from frames that are
 * read over one channel. The video becomes visible with the job's end, whole or not at all.
 */
const video: Handler<'video'> = async context => {
  const { payload, job, worker } = context;
  const object = newObjectKey('videos', job.id);
  const pictures = await inspectFirstFrame(context);
  const ffmpeg =
    pictures && payload.encode !== 'worker' ? await findHostEncoder(context) : undefined;
  if (payload.encode === 'host' && !ffmpeg)
    throw new WindlassError('video_failed', {
      detail: `Video creation failed: the host cannot make ${payload.type} of these frames.`,
      hint: 'Leave "encode" out, or install an ffmpeg with the encoder on the host.',
    });
  const onHost = pictures && ffmpeg && (await encodeOnHost(context, { object, pictures, ffmpeg }));
  const bytes = onHost || (await encodeInWorker(context, object));
  return {
    result: {
      object,
      type: payload.type,
      bytes,
      frames: payload.images.length,
      encoded: onHost ? 'host' : 'worker',
    },
    promote: async tx => {
      const { cache, type } = payload;
      if (!cache) return;
      await lockProject(tx, cache.project);
      const entry = { ...cache, object, type, size: bytes };
      await putCacheEntry(tx, entry, worker.config.LIMIT_PROJECT_BYTES);
    },
    after: async () => context.worker.sessions.removeFinishedRun(context.job),
  };
};

export default video;

/** Locks the project, so that it is not deleted before the transaction ends. */
async function lockProject(tx: Tx, pid: string): Promise<void> {
  const alive = and(eq(projects.pid, pid), isNull(projects.deleted));
  if (await rowExists(tx, projects, alive, 'share')) return;
  throw new WindlassError('conflict', {
    detail: 'Conflict: the project that the video was for has been deleted.',
    hint: 'Start another one, for another project or none.',
  });
}
