import { and, eq, inArray, isNull, type SQL, sql } from 'drizzle-orm';
import type { PgColumn } from 'drizzle-orm/pg-core';
import type { Db } from '../../shared/database/connect.ts';
import {
  artifacts,
  cacheEntries,
  jobs,
  parts,
  segments,
  views,
} from '../../shared/database/schema.ts';
import { isOpenById } from '../../shared/jobs/job-conditions.ts';
import { resultObjects } from '../../shared/jobs/result-objects.ts';
import { RESULT_KEPT } from '../../shared/jobs/result-retention.ts';

/** The id in an object's key, `KIND/ID/…`. */
const idInKey = (key: string) => key.split('/')[1] ?? '';

/** Which of these objects a row refers to; any kind of row may refer to any prefix. */
export async function findReferenced(db: Db, keys: string[]): Promise<Set<string>> {
  if (keys.length === 0) return new Set();
  const ids = [...new Set(keys.map(idInKey))];
  const find = (column: PgColumn, where?: SQL) =>
    db
      .select({ object: sql<string | null>`${column}` })
      .from(column.table)
      .where(and(where, inArray(column, keys)));
  const found = [
    // In the order in which references move, from a result into a cache and from a part into an artifact: one that left a
    // row before its query is found in the other later.
    await db
      .select({ object: sql<string | null>`unnest(array[${resultObjects(sql`${jobs.result}`)}])` })
      .from(jobs)
      .where(and(inArray(jobs.id, ids), sql`${jobs.finished} > now() - ${RESULT_KEPT}`)),
    await find(parts.object),
    await find(artifacts.object),
    await find(cacheEntries.object),
    await find(views.object),
    // By the job id in the key, which is indexed.
    await find(segments.object, inArray(segments.job, ids)),
  ];
  return new Set(found.flat().flatMap(row => row.object ?? []));
}

/**
 * Which of these objects an open job may still commit a reference to: its video, artifact, part or view. A parse of
 * many files stores its first artifact long before its commit.
 */
export async function findClaimedByOpenJobs(db: Db, keys: string[]): Promise<Set<string>> {
  const ids = [...new Set(keys.map(idInKey))];
  const find = (id: PgColumn, isOpen: SQL) =>
    db
      .select({ id: sql<string | null>`${id}` })
      .from(jobs)
      .where(and(inArray(id, ids), isOpen));
  const isOpenOf = isNull(jobs.finished);
  const open = [
    await find(jobs.id, isOpenById),
    await find(jobs.model, isOpenOf),
    await find(jobs.upload, isOpenOf),
    await db
      .select({ id: views.id })
      .from(views)
      .innerJoin(jobs, eq(jobs.id, views.job))
      .where(and(inArray(views.id, ids), isOpenById)),
  ];
  const claimed = new Set(open.flat().map(row => row.id));
  return new Set(keys.filter(key => claimed.has(idInKey(key))));
}
