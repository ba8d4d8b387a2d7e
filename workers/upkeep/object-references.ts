import { and, eq, inArray, isNull, sql } from 'drizzle-orm';
import type { Db } from '../../shared/database/connect.ts';
import {
  artifacts,
  cacheEntries,
  jobs,
  parts,
  segments,
  views,
} from '../../shared/database/schema.ts';

/** A job's result can be fetched for 24 h after its end, and a cache may take it over until then: an hour of margin. */
const RESULT_KEPT = sql`interval '25 hours'`;

/** The id in an object's key, `KIND/ID/…`. */
const idInKey = (key: string) => key.split('/')[1] ?? '';

/** Which of these objects rows refer to: whichever kind a key is of, any kind of row may. */
export async function findReferenced(db: Db, keys: string[]): Promise<Set<string>> {
  if (keys.length === 0) return new Set();
  const ids = [...new Set(keys.map(idInKey))];
  const result = sql<string>`${jobs.result}->>'object'`;
  const found = [
    // One after the other, as objects are handed over: what has left a part by now is seen as the artifact's below.
    await db.select({ object: parts.object }).from(parts).where(inArray(parts.object, keys)),
    await db
      .select({ object: artifacts.object })
      .from(artifacts)
      .where(inArray(artifacts.object, keys)),
    await db
      .select({ object: cacheEntries.object })
      .from(cacheEntries)
      .where(inArray(cacheEntries.object, keys)),
    await db.select({ object: views.object }).from(views).where(inArray(views.object, keys)),
    // Segments and jobs are found by the job in the key.
    await db
      .select({ object: segments.object })
      .from(segments)
      .where(and(inArray(segments.job, ids), inArray(segments.object, keys))),
    await db
      .select({ object: result })
      .from(jobs)
      .where(and(inArray(jobs.id, ids), sql`${jobs.finished} > now() - ${RESULT_KEPT}`)),
  ];
  return new Set(found.flat().flatMap(row => row.object ?? []));
}

/**
 * Which of these objects open work may yet refer to: what a video's job stored, what a parse stored for its model, and
 * what is made for a view. A parse of many files stores its first artifact long before it promotes them all.
 */
export async function findClaimedByOpenJobs(db: Db, keys: string[]): Promise<Set<string>> {
  const ids = [...new Set(keys.map(idInKey))];
  const open = [
    await db
      .select({ id: jobs.id })
      .from(jobs)
      .where(and(inArray(jobs.id, ids), isNull(jobs.finished))),
    await db
      .select({ id: jobs.model })
      .from(jobs)
      .where(and(inArray(jobs.model, ids), isNull(jobs.finished))),
    await db
      .select({ id: jobs.upload })
      .from(jobs)
      .where(and(inArray(jobs.upload, ids), isNull(jobs.finished))),
    await db
      .select({ id: views.id })
      .from(views)
      .innerJoin(jobs, eq(jobs.id, views.job))
      .where(and(inArray(views.id, ids), isNull(jobs.finished))),
  ];
  const awaited = new Set(open.flat().map(row => row.id));
  return new Set(keys.filter(key => awaited.has(idInKey(key))));
}
