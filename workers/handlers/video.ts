import { and, eq, isNull } from 'drizzle-orm';
import type { Tx } from '../../shared/database/connect.ts';
import { rowExists } from '../../shared/database/row-exists.ts';
import { projects } from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors/errors.ts';
import { newObjectKey } from '../../shared/jobs/object-keys.ts';
import { assertWriter } from '../../shared/projects/assert-writer.ts';
import { checkCacheSize, putCacheEntry } from '../../shared/projects/cache-entry.ts';
import { chargeUserStorage } from '../../shared/quotas/user-storage.ts';
import type { Handler } from '../context.ts';
import { makeVideo } from '../video/make-video.ts';

/** Makes a video, which becomes visible with the job's end, whole or not at all. */
const video: Handler<'video'> = async context => {
  const { payload, job, worker } = context;
  const object = newObjectKey('videos', job.id);
  const made = await makeVideo(context, object);
  const { cache, type } = payload;
  // It is kept for a day nevertheless: work of hours is not thrown away.
  const uncached = cache && checkCacheSize(made.bytes, worker.config);
  return {
    result: { object, type, ...made, ...(uncached !== undefined && { uncached }) },
    promote: async tx => {
      const { owner: user } = job;
      if (cache && uncached === undefined) {
        await lockProject(tx, cache.project);
        await assertWriter(tx, { project: cache.project, username: user });
        const { bytes: size, frames } = made;
        const entry = { ...cache, object, type, size, frames, storedBy: user };
        await putCacheEntry(tx, entry, worker.config);
      }
      const limit = worker.config.LIMIT_USER_BYTES;
      await chargeUserStorage(tx, { user, added: made.stored, limit });
    },
    stored: [object, made.poster, made.sprite],
    after: async () => context.worker.finishedRuns.removeSoon(context.job),
  };
};

export default video;

/** Locks the project, so that it is not deleted before the transaction ends. */
async function lockProject(tx: Tx, pid: string): Promise<void> {
  const alive = and(eq(projects.pid, pid), isNull(projects.deleted));
  if (await rowExists(tx, projects, alive, 'share')) return;
  throw new WindlassError('conflict', {
    detail: 'the project that the video was for has been deleted.',
    hint: 'Start another one, for another project or none.',
  });
}
