import { sql } from 'drizzle-orm';
import type { Tx } from './database/connect.ts';
import { bookmarks, cacheEntries, models, uploads } from './database/schema.ts';
import { WindlassError } from './errors.ts';

/** What is about to be kept in which project. */
export interface Growth {
  project: string;
  /** Bytes more than before. */
  added: number;
  /** LIMIT_PROJECT_BYTES. */
  limit: number;
}

/**
 * Bytes that a project keeps: artifacts, parts of uploads, cached videos and bookmarks. Models and uploads keep count of
 * theirs, so that this does not grow with the number of artifacts or parts.
 */
export async function readProjectBytes(db: Tx, pid: string): Promise<number> {
  const [row] = await db.execute<{ bytes: string }>(sql`select
    (select coalesce(sum(${models.bytes}), 0) from ${models} where ${models.project} = ${pid})
    + (select coalesce(sum(${uploads.bytes}), 0) from ${uploads}
       join ${models} on ${models.mid} = ${uploads.model} where ${models.project} = ${pid})
    + (select coalesce(sum(${cacheEntries.size}), 0) from ${cacheEntries} where ${cacheEntries.project} = ${pid})
    + (select coalesce(sum(octet_length(${bookmarks.content})), 0) from ${bookmarks} where ${bookmarks.project} = ${pid})
    as bytes`);
  return Number(row?.bytes ?? 0);
}

/** Throws `insufficient_storage` where so much more would be too much: before it is sent, as far as is known then. */
export async function assertProjectRoom(db: Tx, { project, added, limit }: Growth): Promise<void> {
  if (limit === 0) return;
  if ((await readProjectBytes(db, project)) + added > limit) throw projectIsFull(limit);
}

/**
 * The same when it has been written, in the transaction that does: of two at once the second sees what the first has kept.
 * Call it last: other locks are never asked for while this one is held. What grows by nothing is never refused, so that a
 * full project can be made smaller.
 */
export async function holdProjectRoom(tx: Tx, { project, added, limit }: Growth): Promise<void> {
  if (limit === 0 || added <= 0) return;
  await tx.execute(sql`select pg_advisory_xact_lock(hashtextextended(${`bytes ${project}`}, 0))`);
  if ((await readProjectBytes(tx, project)) > limit) throw projectIsFull(limit);
}

function projectIsFull(limit: number): WindlassError {
  return new WindlassError('insufficient_storage', {
    detail: `Insufficient storage: with this the project would keep more than ${limit} bytes.`,
    hint: 'Delete models, artifacts, cached videos, bookmarks or uploads of the project. LIMIT_PROJECT_BYTES sets the limit.',
  });
}
