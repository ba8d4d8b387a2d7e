import { and, eq, sql } from 'drizzle-orm';
import type { Tx } from '../database/connect.ts';
import { cacheEntries } from '../database/schema.ts';
import { WindlassError } from '../errors/errors.ts';
import { assertProjectQuota } from '../quotas/project-quota.ts';
import {
  chargeStorage,
  growthOf,
  type StorageLimits,
  type Stored,
} from '../quotas/storage-limits.ts';
import type { Config } from '../settings/config.ts';
import { scheduleDeletion } from '../storage/pending-deletions.ts';

/** PostgreSQL's B-tree takes keys of 2,704 bytes, including the project's id and the overhead of both. */
const MAX_BYTES = 2_400;
export const MAX_KEY_LENGTH = 900;

/** What is wrong with a key of a project's cache; undefined when it is valid. */
export function checkCacheKey(key: string, max = MAX_KEY_LENGTH): string | undefined {
  if (key === '') return 'must not be empty';
  if (key.length > max) return `must have at most ${max} characters`;
  if (/[\p{Cc}\p{Surrogate}]/u.test(key))
    return 'must be well-formed Unicode without control characters';
  if (Buffer.byteLength(key) > MAX_BYTES) return `must have at most ${MAX_BYTES} bytes in UTF-8`;
  return undefined;
}

/** What is wrong with a key for a new entry. */
export function checkNewCacheKey(key: string, max?: number): string | undefined {
  // Browsers and curl take such a segment for a step in the address: DELETE of `..` removed the project.
  if (key.split('/').some(segment => segment === '.' || segment === '..'))
    return 'must have no . or .. between slashes';
  return checkCacheKey(key, max);
}

export interface CacheReference {
  project: string;
  key: string;
  object: string;
  type: string;
  size: number;
  frames: number;
  storedBy: string;
}

/** Why no cache takes a video of that size; undefined where one does. */
export function checkCacheSize(
  size: number,
  { LIMIT_CACHE_BYTES: limit }: Pick<Config, 'LIMIT_CACHE_BYTES'>,
): string | undefined {
  if (limit === 0 || size <= limit) return undefined;
  return `the video has ${size} bytes, more than the whole cache of a project, ${limit}.`;
}

/** Throws `insufficient_storage` where the project is full, but for what the key has now. A check without locks. */
export async function assertCacheRoom(
  db: Tx,
  { project, key }: Pick<CacheReference, 'project' | 'key'>,
  { LIMIT_PROJECT_BYTES: limit }: StorageLimits,
): Promise<void> {
  const [present] = await db
    .select({ size: cacheEntries.size })
    .from(cacheEntries)
    .where(and(eq(cacheEntries.project, project), eq(cacheEntries.key, key)));
  await assertProjectQuota(db, { project, added: 1 - (present?.size ?? 0), limit });
}

/**
 * Stores a reference in a project's cache, in place of one under the same key. The transaction has locked the project,
 * and locks nothing afterwards. Throws `insufficient_storage` beyond the limits of project and user, and for more bytes
 * than the cache's limit; upkeep removes other excess.
 */
export async function putCacheEntry(
  tx: Tx,
  given: CacheReference,
  limits: StorageLimits & Pick<Config, 'LIMIT_CACHE_BYTES'>,
): Promise<void> {
  const detail = checkCacheSize(given.size, limits);
  if (detail !== undefined)
    throw new WindlassError('insufficient_storage', {
      detail,
      hint: 'Make a smaller one, or fetch it without the cache. LIMIT_CACHE_BYTES sets the limit.',
    });
  const growth = growthOf(given, await replaceCacheEntry(tx, given));
  await chargeStorage(tx, { project: given.project, user: given.storedBy, ...growth, limits });
}

/** Returns what the key referred to before. */
async function replaceCacheEntry(tx: Tx, given: CacheReference): Promise<Stored | undefined> {
  const place = and(eq(cacheEntries.project, given.project), eq(cacheEntries.key, given.key));
  for (;;) {
    const [made] = await tx
      .insert(cacheEntries)
      .values({ ...given, about: aboutOf(given) })
      .onConflictDoNothing()
      .returning({ key: cacheEntries.key });
    if (made) return undefined;
    const [present] = await tx.select().from(cacheEntries).where(place).for('update');
    // It was removed in between: insert again.
    if (!present) continue;
    if (present.object === given.object) {
      await recordCacheUse(tx, present);
      // It stays that of who stored it.
      return given;
    }
    const { object, type, size, storedBy } = given;
    const now = sql`now()`;
    await tx
      .update(cacheEntries)
      .set({ object, type, size, storedBy, about: aboutOf(given), created: now, used: now })
      .where(place);
    await scheduleDeletion(tx, [present.object]);
    return present;
  }
}

const aboutOf = ({ object, frames }: CacheReference) => ({ object, frames });

/** Null for entries of 0.1.0. */
export const framesOfEntry = sql<number | null>`(${cacheEntries.about} ->> 'frames')::int`;

const wasOtherUsedLater = sql`exists (select from ${cacheEntries} other
  where other.project = ${cacheEntries.project} and other.used > ${cacheEntries.used})`;
/**
 * Whether the use of an entry is to be recorded: the first after it was stored, where another one
 * was used since, and one a minute of the others, so that many requests are few writes.
 */
export const isCacheUseDue = sql<boolean>`(${cacheEntries.used} < now() - interval '1 minute'
  or (${cacheEntries.used} = ${cacheEntries.created} and ${wasOtherUsedLater}))`;

export async function recordCacheUse(
  db: Tx,
  { project, key }: Pick<CacheReference, 'project' | 'key'>,
): Promise<void> {
  await db
    .update(cacheEntries)
    .set({ used: sql`now()` })
    .where(and(eq(cacheEntries.project, project), eq(cacheEntries.key, key), isCacheUseDue));
}
