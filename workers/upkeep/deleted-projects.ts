import { and, asc, eq, inArray, isNotNull, isNull, notExists, or, sql } from 'drizzle-orm';
import type { PgColumn, PgTable } from 'drizzle-orm/pg-core';
import type { Tx } from '../../shared/database/connect.ts';
import {
  artifacts,
  bookmarks,
  cacheEntries,
  jobs,
  models,
  parts,
  projects,
  uploads,
  views,
} from '../../shared/database/schema.ts';
import { cancelJobs, publishCancelled } from '../../shared/jobs/cancel.ts';
import { scheduleDeletion } from '../../shared/storage/pending-deletions.ts';
import type { WorkerContext } from '../context.ts';

type Context = Pick<WorkerContext, 'database' | 'notifications' | 'stopping'>;

/** Rows in one statement: a row may have 16 MiB, and a statement may take 10 s. */
const BATCH = 100;
const PROJECTS = 20;
/** Bounds one run; the pause until the next one leaves the database to others. */
const ROUND_MS = 5_000;

/**
 * Removes the rows below deleted projects, in batches of one transaction each, and at last the project's own row. A later
 * run continues one that died. Workers that run this at the same time share the rows: each skips what others have locked.
 */
export async function purgeDeletedProjects(context: Context): Promise<void> {
  const { db } = context.database;
  const rows = await db
    .select({ pid: projects.pid })
    .from(projects)
    .where(isNotNull(projects.deleted))
    .orderBy(asc(projects.deleted))
    .limit(PROJECTS);
  const until = performance.now() + ROUND_MS;
  const mayContinue = () => !context.stopping.aborted && performance.now() < until;
  for (const { pid } of rows) {
    if (!mayContinue()) return;
    await cancelOpenJobs(context, pid);
    for (const removeSome of [
      removeArtifacts,
      removeParts,
      removeUploads,
      removeCacheEntries,
      removeBookmarks,
      removeModels,
    ]) {
      while (mayContinue() && (await db.transaction(tx => removeSome(tx, pid))) > 0);
    }
    await db.transaction(tx => removeProject(tx, pid));
  }
}

const modelsOf = (tx: Tx, pid: string) =>
  tx.select({ mid: models.mid }).from(models).where(eq(models.project, pid));
const uploadsOf = (tx: Tx, pid: string) =>
  tx
    .select({ uid: uploads.uid })
    .from(uploads)
    .where(inArray(uploads.model, modelsOf(tx, pid)));

/** Cancels the jobs that were started while the project was being deleted; the deletion cancelled the others. */
async function cancelOpenJobs(context: Context, pid: string): Promise<void> {
  const { db } = context.database;
  publishCancelled(context, await cancelJobs(db, openJobs(db, pid)));
}

const openJobs = (tx: Tx, pid: string) =>
  and(
    isNull(jobs.finished),
    isNull(jobs.cancelRequested),
    or(eq(jobs.project, pid), inArray(jobs.model, modelsOf(tx, pid))),
  );

/** Locks some rows, skipping those that are locked, and selects their addresses. */
const lockSome = (tx: Tx, table: PgTable, column: PgColumn, of: Parameters<typeof inArray>[1]) =>
  tx
    .select({ address: sql`ctid` })
    .from(table)
    .where(inArray(column, of as never))
    .limit(BATCH)
    .for('update', { skipLocked: true });

async function removeArtifacts(tx: Tx, pid: string): Promise<number> {
  const batch = lockSome(tx, artifacts, artifacts.model, modelsOf(tx, pid));
  const gone = await tx
    .delete(artifacts)
    .where(sql`ctid = any(array(${batch}))`)
    .returning({ object: artifacts.object });
  const objects = gone.map(row => row.object).filter(object => object !== null);
  if (objects.length > 0) {
    const itsViews = await tx
      .delete(views)
      .where(inArray(views.source, objects))
      .returning({ object: views.object });
    await scheduleDeletion(tx, [...objects, ...itsViews.map(row => row.object)]);
  }
  return gone.length;
}

async function removeParts(tx: Tx, pid: string): Promise<number> {
  const batch = lockSome(tx, parts, parts.upload, uploadsOf(tx, pid));
  const gone = await tx
    .delete(parts)
    .where(sql`ctid = any(array(${batch}))`)
    .returning({ object: parts.object });
  await scheduleDeletion(
    tx,
    gone.map(row => row.object),
  );
  return gone.length;
}

async function removeUploads(tx: Tx, pid: string): Promise<number> {
  const batch = tx
    .select({ uid: uploads.uid })
    .from(uploads)
    .where(and(inArray(uploads.model, modelsOf(tx, pid)), notExists(partsOf(tx))))
    .limit(BATCH)
    .for('update', { skipLocked: true });
  const gone = await tx
    .delete(uploads)
    .where(inArray(uploads.uid, batch))
    .returning({ uid: uploads.uid });
  return gone.length;
}

const partsOf = (tx: Tx) =>
  tx.select({ part: parts.part }).from(parts).where(eq(parts.upload, uploads.uid));

async function removeCacheEntries(tx: Tx, pid: string): Promise<number> {
  const batch = lockSome(tx, cacheEntries, cacheEntries.project, [pid]);
  const gone = await tx
    .delete(cacheEntries)
    .where(sql`ctid = any(array(${batch}))`)
    .returning({ object: cacheEntries.object });
  await scheduleDeletion(
    tx,
    gone.map(row => row.object),
  );
  return gone.length;
}

async function removeBookmarks(tx: Tx, pid: string): Promise<number> {
  const batch = lockSome(tx, bookmarks, bookmarks.project, [pid]);
  const gone = await tx
    .delete(bookmarks)
    .where(sql`ctid = any(array(${batch}))`)
    .returning({ bid: bookmarks.bid });
  return gone.length;
}

async function removeModels(tx: Tx, pid: string): Promise<number> {
  const batch = tx
    .select({ mid: models.mid })
    .from(models)
    .where(and(eq(models.project, pid), isEmpty(tx)))
    .limit(BATCH)
    .for('update', { skipLocked: true });
  const gone = await tx
    .delete(models)
    .where(inArray(models.mid, batch))
    .returning({ mid: models.mid });
  return gone.length;
}

const isEmpty = (tx: Tx) =>
  and(
    notExists(
      tx.select({ aid: artifacts.aid }).from(artifacts).where(eq(artifacts.model, models.mid)),
    ),
    notExists(tx.select({ uid: uploads.uid }).from(uploads).where(eq(uploads.model, models.mid))),
  );

/** Removes the row once nothing is below it. Foreign keys would cascade, and the objects' keys would be lost. */
async function removeProject(tx: Tx, pid: string): Promise<void> {
  const mine = and(eq(projects.pid, pid), isNotNull(projects.deleted));
  const [found] = await tx
    .select({ pid: projects.pid })
    .from(projects)
    .where(mine)
    .for('update', { skipLocked: true });
  if (!found) return;
  // Nothing can be added from here on: the foreign key of a new row below needs a lock on this one.
  await tx
    .delete(projects)
    .where(
      and(
        mine,
        notExists(tx.select({ mid: models.mid }).from(models).where(eq(models.project, pid))),
        notExists(
          tx
            .select({ key: cacheEntries.key })
            .from(cacheEntries)
            .where(eq(cacheEntries.project, pid)),
        ),
        notExists(
          tx.select({ bid: bookmarks.bid }).from(bookmarks).where(eq(bookmarks.project, pid)),
        ),
        notExists(tx.select({ id: jobs.id }).from(jobs).where(openJobs(tx, pid))),
      ),
    );
}
