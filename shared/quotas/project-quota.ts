import { eq, sql } from 'drizzle-orm';
import type { Tx } from '../database/connect.ts';
import { bookmarks, cacheEntries, models, projectBytes, uploads } from '../database/schema.ts';
import { WindlassError } from '../errors/errors.ts';

/** Bytes that are about to be stored in a project. */
interface QuotaCharge {
  project: string;
  /** Bytes that the project stores more than before. */
  added: number;
  /** LIMIT_PROJECT_BYTES. */
  limit: number;
}

/** Throws `insufficient_storage` when the quota does not suffice. A check before bytes are received, without locks. */
export async function assertProjectQuota(
  db: Tx,
  { project, added, limit }: QuotaCharge,
): Promise<void> {
  if (limit === 0) return;
  const [known] = await db.select().from(projectBytes).where(eq(projectBytes.project, project));
  if ((known?.bytes ?? 0) + added <= limit) return;
  if ((await readProjectBytes(db, project)) + added > limit) throw projectIsFull(limit);
}

/**
 * Like assertProjectQuota(), in the transaction of the write: of two concurrent writers the second counts the bytes of the
 * first. Every write that adds bytes to a project must call it, even without a limit, and after taking all locks but those of
 * jobs.
 */
export async function chargeProjectQuota(
  tx: Tx,
  { project, added, limit }: QuotaCharge,
): Promise<void> {
  if (added <= 0) return;
  const [most] = await tx
    .insert(projectBytes)
    .values({ project, bytes: added })
    .onConflictDoUpdate({
      target: projectBytes.project,
      set: { bytes: sql`${projectBytes.bytes} + ${added}` },
    })
    .returning();
  if (limit === 0 || (most?.bytes ?? 0) <= limit) return;
  // This row's lock blocks other writers, so that no byte is missed. Bytes deleted meanwhile still count.
  const bytes = await readProjectBytes(tx, project);
  if (bytes > limit) throw projectIsFull(limit);
  await tx.update(projectBytes).set({ bytes }).where(eq(projectBytes.project, project));
}

/**
 * Bytes that a project stores: artifacts, parts of uploads, cached videos and bookmarks. Although models and uploads store
 * their sums, this takes about 10 ms with 10,000 of each.
 */
async function readProjectBytes(db: Tx, pid: string): Promise<number> {
  const [row] = await db.execute<{ bytes: string }>(sql`select
    (select coalesce(sum(${models.bytes}), 0) from ${models} where ${models.project} = ${pid})
    + (select coalesce(sum(${uploads.bytes}), 0) from ${uploads}
       join ${models} on ${models.mid} = ${uploads.model} where ${models.project} = ${pid})
    + (select coalesce(sum(${cacheEntries.size}), 0) from ${cacheEntries} where ${cacheEntries.project} = ${pid})
    + (select coalesce(sum(octet_length(${bookmarks.content})), 0) from ${bookmarks} where ${bookmarks.project} = ${pid})
    as bytes`);
  return Number(row?.bytes ?? 0);
}

function projectIsFull(limit: number): WindlassError {
  return new WindlassError('insufficient_storage', {
    detail: `the project would store more than ${limit} bytes.`,
    hint: 'Delete models, artifacts, cached videos, bookmarks or uploads of the project. LIMIT_PROJECT_BYTES sets the limit.',
  });
}
