import { and, eq, isNull } from 'drizzle-orm';
import type { Tx } from '../../shared/database/connect.ts';
import { rowExists } from '../../shared/database/row-exists.ts';
import { projects } from '../../shared/database/schema.ts';
import { type ErrorCode, WindlassError } from '../../shared/errors/errors.ts';
import { newObjectKey } from '../../shared/jobs/object-keys.ts';
import { assertWriter } from '../../shared/projects/assert-writer.ts';
import {
  type CacheReference,
  checkCacheSize,
  putCacheEntry,
} from '../../shared/projects/cache-entry.ts';
import { chargeUserStorage } from '../../shared/quotas/user-storage.ts';
import type { Config } from '../../shared/settings/config.ts';
import type { Handler } from '../context.ts';
import { makeVideo } from '../video/make-video.ts';

/** Makes a video, which becomes visible with the job's end, whole or not at all. */
const video: Handler<'video'> = async context => {
  const { payload, job, worker } = context;
  const object = newObjectKey('videos', job.id);
  const made = await makeVideo(context, object);
  const { cache, type } = payload;
  return {
    result: { object, type, ...made },
    promote: async tx => {
      const { owner: user } = job;
      const { bytes: size, frames } = made;
      const limit = worker.config.LIMIT_USER_BYTES;
      const charge = (part: Tx) => chargeUserStorage(part, { user, added: made.stored, limit });
      const entry = cache && { ...cache, object, type, size, frames, storedBy: user };
      const uncached = entry && (await fillCache(tx, entry, { charge, config: worker.config }));
      await charge(tx);
      return { uncached };
    },
    stored: [object, made.poster, made.sprite],
    after: async () => context.worker.finishedRuns.removeSoon(context.job),
  };
};

export default video;

/**
 * Why it is not in the project's cache, which has no room or is no longer the owner's to write to; undefined where it is.
 * It is kept for a day nevertheless: work of hours is not thrown away. `charge` throws where its owner has no room for both
 * the entry and the video.
 */
async function fillCache(
  tx: Tx,
  entry: CacheReference,
  { charge, config }: { charge: (part: Tx) => Promise<void>; config: Config },
): Promise<string | undefined> {
  const tooLarge = checkCacheSize(entry.size, config);
  if (tooLarge !== undefined) return tooLarge;
  await lockProject(tx, entry.project);
  try {
    await assertWriter(tx, { project: entry.project, username: entry.storedBy });
    // What was written before it is refused is rolled back.
    await tx.transaction(async part => {
      await putCacheEntry(part, entry, config);
      await charge(part);
    });
    return undefined;
  } catch (error) {
    if (error instanceof WindlassError && REASONS.has(error.code)) return error.message;
    throw error;
  }
}

const REASONS: ReadonlySet<ErrorCode> = new Set(['forbidden', 'insufficient_storage']);

/** Locks the project, so that it is not deleted before the transaction ends. */
async function lockProject(tx: Tx, pid: string): Promise<void> {
  const alive = and(eq(projects.pid, pid), isNull(projects.deleted));
  if (await rowExists(tx, projects, alive, 'share')) return;
  throw new WindlassError('conflict', {
    detail: 'the project that the video was for has been deleted.',
    hint: 'Start another one, for another project or none.',
  });
}
