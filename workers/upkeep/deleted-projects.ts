import {
  and,
  asc,
  eq,
  gt,
  inArray,
  isNotNull,
  isNull,
  notExists,
  type SQL,
  sql,
} from 'drizzle-orm';
import type { PgColumn, PgTable } from 'drizzle-orm/pg-core';
import { anyOf } from '../../shared/database/any-of.ts';
import type { Db, Tx } from '../../shared/database/connect.ts';
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
import { cancelJobsOf, publishCancelled } from '../../shared/jobs/cancel.ts';
import { scheduleDeletion } from '../../shared/storage/pending-deletions.ts';
import type { WorkerContext } from '../context.ts';

type Context = Pick<WorkerContext, 'database' | 'notifications' | 'stopping'>;

/** Rows in one statement: a row may have 16 MiB, and a statement 10 s. */
const BATCH = 100;
/** Looked for at once. What is not removed in one run counts for its users until the next. */
const PROJECTS = 1_000;
/** Bounds one run; the pause until the next one leaves the database to others. */
const ROUND_MS = 5_000;

const isOf = (project: PgColumn) => eq(project, projects.pid);
/** Looks at each project by itself, as `offset 0` has it: a join would read what belongs to others, too. */
const hasNone = (table: PgTable, where: SQL | undefined) =>
  sql`not exists (select from ${table} where ${where} offset 0)`;
const isEmpty = and(
  hasNone(models, isOf(models.project)),
  hasNone(cacheEntries, isOf(cacheEntries.project)),
  hasNone(bookmarks, isOf(bookmarks.project)),
);

/**
 * Removes the rows below deleted projects, one transaction per batch, then the project's row. A later run continues one
 * that died; concurrent workers share the rows, as each skips locked ones. Empty projects are removed together and come last:
 * anybody can make thousands of them, and what others have deleted counts for these until it is removed.
 */
export async function purgeDeletedProjects(context: Context): Promise<void> {
  const until = performance.now() + ROUND_MS;
  const mayContinue = () => !context.stopping.aborted && performance.now() < until;
  const failures: unknown[] = [];
  let isMore = true;
  while (isMore && mayContinue()) {
    const pids = await nextProjects(context.database.db);
    const removed = new Set<string>();
    for (let at = 0; at < pids.length && mayContinue(); at += BATCH) {
      const some = pids.slice(at, at + BATCH);
      // One that fails keeps those beside it; each is tried by itself below.
      const gone = await context.database.db
        .transaction(tx => removeProjects(tx, some))
        .catch(() => []);
      for (const pid of gone) removed.add(pid);
    }
    for (const pid of pids) {
      if (!mayContinue()) break;
      if (removed.has(pid)) continue;
      await purgeProject(context, pid, mayContinue).catch(error => failures.push(error));
    }
    isMore = removed.size > 0 && pids.length === PROJECTS;
  }
  if (failures.length > 0) throw failures[0];
}

async function nextProjects(db: Db): Promise<string[]> {
  const rows = await db
    .select({ pid: projects.pid })
    .from(projects)
    .where(isNotNull(projects.deleted))
    // Those that fail, or take long, must not come first each time.
    .orderBy(sql`${isEmpty}`, sql`random()`)
    .limit(PROJECTS);
  return rows.map(row => row.pid);
}

async function purgeProject(context: Context, pid: string, mayContinue: () => boolean) {
  const { db } = context.database;
  const removeAll = async <T>(batches: Batch<T>[], what: T) => {
    for (const removeSome of batches)
      while (mayContinue() && (await db.transaction(tx => removeSome(tx, what))) === BATCH);
  };
  await cancelStarted(context, eq(jobs.project, pid));
  // A join with all models of a large project would read what belongs to others, too.
  let mids = await nextModels(db, pid, '');
  while (mids.length > 0 && mayContinue()) {
    await cancelStarted(context, sql`${jobs.model} = ${anyOf(mids)}`);
    await removeAll(OF_MODELS, mids);
    mids = await nextModels(db, pid, mids.at(-1) ?? '');
  }
  await removeAll(OF_PROJECT, pid);
  await db.transaction(tx => removeProjects(tx, [pid]));
}

async function nextModels(db: Db, pid: string, after: string): Promise<string[]> {
  const rows = await db
    .select({ mid: models.mid })
    .from(models)
    .where(and(eq(models.project, pid), gt(models.mid, after)))
    .orderBy(asc(models.mid))
    .limit(BATCH);
  return rows.map(row => row.mid);
}

/** Cancels jobs that were started during the deletion, which cancelled the others itself. */
async function cancelStarted(context: Context, which: SQL): Promise<void> {
  const { db } = context.database;
  const cancelled = await cancelJobsOf(db, and(which, isNull(jobs.cancelRequested)));
  publishCancelled(context, cancelled);
}

/** Removes a batch, and returns how many rows: fewer than BATCH where no more are left that nobody has locked. */
type Batch<T> = (tx: Tx, what: T) => Promise<number>;

/** What removes the rows below models, in the order of their dependence. */
const OF_MODELS: Batch<string[]>[] = [
  async (tx, mids) => {
    const ofModels = sql`${artifacts.model} = ${anyOf(mids)}`;
    const removed = await removeBatch(tx, artifacts, ofModels, artifacts.object);
    const objects = removed.filter(object => object !== null);
    const itsViews = await tx
      .delete(views)
      .where(inArray(views.source, objects))
      .returning({ object: views.object });
    await scheduleDeletion(tx, [...objects, ...itsViews.map(row => row.object)]);
    return removed.length;
  },
  async (tx, mids) => {
    const some = await tx
      .select({ uid: uploads.uid })
      .from(uploads)
      .where(sql`${uploads.model} = ${anyOf(mids)}`)
      .limit(BATCH);
    const uids = anyOf(some.map(row => row.uid));
    const objects = await removeBatch(tx, parts, sql`${parts.upload} = ${uids}`, parts.object);
    await scheduleDeletion(tx, objects);
    if (objects.length === BATCH) return BATCH;
    const itsParts = tx.select().from(parts).where(eq(parts.upload, uploads.uid));
    const isEmpty = and(sql`${uploads.uid} = ${uids}`, notExists(itsParts));
    return (await removeBatch(tx, uploads, isEmpty)).length;
  },
  async (tx, mids) => {
    const itsArtifacts = tx.select().from(artifacts).where(eq(artifacts.model, models.mid));
    const itsUploads = tx.select().from(uploads).where(eq(uploads.model, models.mid));
    const isEmpty = and(notExists(itsArtifacts), notExists(itsUploads));
    return (await removeBatch(tx, models, and(sql`${models.mid} = ${anyOf(mids)}`, isEmpty)))
      .length;
  },
];

const OF_PROJECT: Batch<string>[] = [
  async (tx, pid) => {
    const ofProject = eq(cacheEntries.project, pid);
    const objects = await removeBatch(tx, cacheEntries, ofProject, cacheEntries.object);
    await scheduleDeletion(tx, objects);
    return objects.length;
  },
  async (tx, pid) => (await removeBatch(tx, bookmarks, eq(bookmarks.project, pid))).length,
];

/** Removes a batch of rows, skipping those that another transaction has locked; returns their objects. */
async function removeBatch(
  tx: Tx,
  table: PgTable,
  where: SQL | undefined,
  object?: PgColumn,
): Promise<(string | null)[]> {
  const batch = tx
    .select({ address: sql`ctid` })
    .from(table)
    .where(where)
    .limit(BATCH)
    .for('update', { skipLocked: true });
  const removed = await tx
    .delete(table)
    .where(sql`ctid = any(array(${batch}))`)
    .returning({ object: sql<string | null>`${object ?? sql`null`}` });
  return removed.map(row => row.object);
}

/** Removes those below which nothing is, and returns them: a cascade of foreign keys would lose the objects' keys. */
async function removeProjects(tx: Tx, pids: string[]): Promise<string[]> {
  const found = await tx
    .select({ pid: projects.pid })
    .from(projects)
    .where(and(sql`${projects.pid} = ${anyOf(pids)}`, isNotNull(projects.deleted)))
    .for('update', { skipLocked: true });
  if (found.length === 0) return [];
  // From here on nothing can be added: the foreign key of a new row needs a lock on this one.
  const removed = await tx
    .delete(projects)
    .where(
      and(
        sql`${projects.pid} = ${anyOf(found.map(({ pid }) => pid))}`,
        isEmpty,
        // By the index of projects. A job of a model was cancelled before the model was removed.
        hasNone(jobs, and(isOf(jobs.project), isNull(jobs.finished), isNull(jobs.cancelRequested))),
      ),
    )
    .returning({ pid: projects.pid });
  return removed.map(({ pid }) => pid);
}
