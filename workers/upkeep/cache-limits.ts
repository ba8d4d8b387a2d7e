import { and, asc, eq, gt, inArray, isNull, lt, sql } from 'drizzle-orm';
import type { Tx } from '../../shared/database/connect.ts';
import { cacheEntries, projects } from '../../shared/database/schema.ts';
import { tryLock } from '../../shared/database/try-lock.ts';
import { scheduleDeletion } from '../../shared/storage/pending-deletions.ts';
import type { WorkerContext } from '../context.ts';

/** Projects of one run: those of a large installation are looked at in turns. */
const PROJECTS = 100;
/** Entries of one transaction. */
const BATCH = 500;

type Context = Pick<WorkerContext, 'database' | 'log' | 'stopping'> & {
  config: Pick<WorkerContext['config'], 'LIMIT_CACHE_BYTES' | 'LIMIT_CACHE_DAYS'>;
};

/**
 * Keeps projects' caches within LIMIT_CACHE_BYTES and LIMIT_CACHE_DAYS, least recently used first. An entry is a
 * reference: its object stays as long as another row refers to it.
 */
export class CacheLimiter {
  readonly #context: Context;
  /** The last project that was looked at. */
  #after = '';

  constructor(context: Context) {
    this.#context = context;
  }

  /** Looks at some projects, and begins anew after the last one. */
  async limitSome(): Promise<void> {
    const { config, database, stopping } = this.#context;
    if (config.LIMIT_CACHE_BYTES === 0 && config.LIMIT_CACHE_DAYS === 0) return;
    const found = await database.db
      .select({
        project: cacheEntries.project,
        isDue: sql<boolean>`${this.#isTooMuch()} or coalesce(bool_or(${this.#isTooOld()}), false)`,
      })
      .from(cacheEntries)
      .where(gt(cacheEntries.project, this.#after))
      .groupBy(cacheEntries.project)
      .orderBy(asc(cacheEntries.project))
      .limit(PROJECTS);
    for (const { project, isDue } of found) {
      while (isDue && !stopping.aborted) {
        const removed = await database.db.transaction(tx => this.#removeSome(tx, project));
        if (removed > 0) this.#context.log.info({ project, removed }, 'evicted cache entries');
        if (removed < BATCH) break;
      }
      if (stopping.aborted) return;
      this.#after = project;
    }
    if (found.length < PROJECTS) this.#after = '';
  }

  /** Removes the least recently used entries, up to a batch; locked ones are left for the next run. */
  async #removeSome(tx: Tx, project: string): Promise<number> {
    const { LIMIT_CACHE_BYTES: limit } = this.#context.config;
    // Another worker's removals would be counted twice.
    if (!(await tryLock(tx, 'caches'))) return 0;
    const ofProject = eq(cacheEntries.project, project);
    // A project that is being deleted loses its cache with it.
    const [alive] = await tx
      .select({ bytes: sql<string>`(select sum(size) from ${cacheEntries} where ${ofProject})` })
      .from(projects)
      .where(and(eq(projects.pid, project), isNull(projects.deleted)))
      .for('share', { of: projects });
    if (!alive) return 0;
    const oldest = await tx
      .select({
        key: cacheEntries.key,
        object: cacheEntries.object,
        size: cacheEntries.size,
        isTooOld: this.#isTooOld(),
      })
      .from(cacheEntries)
      .where(ofProject)
      .orderBy(asc(cacheEntries.used), asc(cacheEntries.size))
      .limit(BATCH)
      .for('update', { skipLocked: true });
    let excess = limit === 0 ? 0 : Number(alive.bytes) - limit;
    const gone = oldest.filter(({ size, isTooOld }) => {
      if (!isTooOld && excess <= 0) return false;
      excess -= size;
      return true;
    });
    if (gone.length === 0) return 0;
    const keys = gone.map(({ key }) => key);
    await tx.delete(cacheEntries).where(and(ofProject, inArray(cacheEntries.key, keys)));
    await scheduleDeletion(
      tx,
      gone.map(({ object }) => object),
    );
    return gone.length;
  }

  #isTooMuch() {
    const { LIMIT_CACHE_BYTES: limit } = this.#context.config;
    return limit === 0 ? sql<boolean>`false` : sql<boolean>`sum(${cacheEntries.size}) > ${limit}`;
  }

  #isTooOld() {
    const { LIMIT_CACHE_DAYS: days } = this.#context.config;
    if (days === 0) return sql<boolean>`false`;
    return sql<boolean>`${lt(cacheEntries.used, sql`now() - make_interval(days => ${days})`)}`;
  }
}
