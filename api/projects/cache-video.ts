import { and, eq, sql } from 'drizzle-orm';
import { jobs } from '../../shared/database/schema.ts';
import { notFound, WindlassError } from '../../shared/errors/errors.ts';
import type { Result } from '../../shared/jobs/catalog.ts';
import type { JobSummary } from '../../shared/jobs/job-record.ts';
import { RESULT_AVAILABLE } from '../../shared/jobs/result-retention.ts';
import { putCacheEntry } from '../../shared/projects/cache-entry.ts';
import type { ApiContext } from '../context.ts';
import type { Exchange } from '../http/exchange.ts';
import { checkGet } from '../http/send-object.ts';
import { currentUser } from '../identity/current-user.ts';
import { lockProjectForShare, needRole } from './access.ts';
import { readNewCacheKey } from './cache-key.ts';

/** A key in a project's cache. */
interface CacheLocation {
  project: string;
  key: string;
}

export function parseCacheQuery(
  cache: string,
  place: Partial<CacheLocation>,
  max: number,
): CacheLocation {
  if (cache === 'project') return parseCacheLocation(place, max);
  throw new WindlassError('unknown_cache_type', {
    detail: `${cache.slice(0, 80)}.`,
    hint: 'Use cache=project, or omit it.',
  });
}

/** `max` is LIMIT_KEY_LENGTH. */
export function parseCacheLocation(
  { project, key }: Partial<CacheLocation>,
  max: number,
): CacheLocation {
  if (!project)
    throw new WindlassError('missing_project', {
      hint: 'Give the id of a project that you write.',
    });
  if (!key)
    throw new WindlassError('missing_cache_key', {
      hint: "Give the key for the video in the project's cache.",
    });
  return { project, key: readNewCacheKey(key, max) };
}

/**
 * Commits the cache entry before the first byte is sent. A video is kept for 24 hours: an entry made later could race with
 * its deletion. Stores nothing where the GET is refused, as 412 or 416.
 */
export async function cacheVideo(
  api: ApiContext,
  { req, res }: Exchange,
  row: Pick<JobSummary, 'id' | 'result'>,
  place: CacheLocation,
): Promise<void> {
  const { object, type, bytes: size, frames } = row.result as Result<'video'>;
  await api.database.db.transaction(async tx => {
    await lockProjectForShare(tx, place.project, needRole(res, 'writer'));
    const [kept] = await tx
      .select({ id: jobs.id })
      .from(jobs)
      .where(and(eq(jobs.id, row.id), sql`${jobs.finished} > now() - ${RESULT_AVAILABLE}`))
      // Its record, which keeps the video, is not removed before the entry keeps it.
      .for('key share');
    if (!kept)
      throw notFound(
        'the video was made more than 24 hours ago and is no longer kept.',
        'Start another one, with project and key.',
      );
    await checkGet(api, req, object);
    const storedBy = currentUser(res).username;
    await putCacheEntry(tx, { ...place, object, type, size, frames, storedBy }, api.config);
  });
}
