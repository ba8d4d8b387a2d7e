import { and, eq, sql } from 'drizzle-orm';
import type { Response } from 'express';
import { putCacheEntry } from '../../shared/cache-entry.ts';
import { jobs } from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors.ts';
import type { Result } from '../../shared/jobs/catalog.ts';
import type { ApiContext } from '../context.ts';
import { currentUser } from '../identity/current-user.ts';
import type { JobSummary } from '../jobs/views/job-summary.ts';
import { lockProjectForShare } from './access.ts';
import { readCacheKey } from './cache-key.ts';

/** Where in which project's cache. */
export interface CacheLocation {
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
    detail: `Unknown cache type: ${cache.slice(0, 80)}.`,
    hint: 'Use cache=project, or leave it out.',
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
      hint: "Give the key that the project's cache shall have it under.",
    });
  return { project, key: readCacheKey(key, max) };
}

/** Committed before the first byte is sent. Bytes are kept for 24 hours: later a reference could come too late to keep them. */
export async function cacheVideo(
  { config, database: { db } }: ApiContext,
  res: Response,
  row: JobSummary,
  place: CacheLocation,
): Promise<void> {
  const { object, type, bytes } = row.result as Result<'video'>;
  await db.transaction(async tx => {
    await lockProjectForShare(tx, place.project, {
      username: currentUser(res).username,
      role: 'writer',
    });
    const [kept] = await tx
      .select({ id: jobs.id })
      .from(jobs)
      .where(and(eq(jobs.id, row.id), sql`${jobs.finished} > now() - interval '24 hours'`));
    if (!kept)
      throw new WindlassError('not_found', {
        detail: 'Not found: the video was made more than 24 hours ago and is no longer kept.',
        hint: 'Start another one, with project and key.',
      });
    const entry = { ...place, object, type, size: bytes };
    await putCacheEntry(tx, entry, config.LIMIT_PROJECT_BYTES);
  });
}
