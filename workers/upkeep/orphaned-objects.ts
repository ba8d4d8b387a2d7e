import { sql } from 'drizzle-orm';
import { pendingDeletions } from '../../shared/database/schema.ts';
import { findForeignStore, listObjects } from '../../shared/installation/store-marker.ts';
import type { StoredObject } from '../../shared/storage/object-store.ts';
import type { WorkerContext } from '../context.ts';
import { isUnavailable } from '../engine/retry.ts';
import { findClaimedByOpenJobs, findReferenced } from './object-references.ts';

/** A younger object may belong to an attempt that is about to commit its row. */
const MIN_AGE_MS = 3_600_000;
/**
 * Time between mark and sweep, which checks the references again. Some servers date an object by the start of its
 * upload, so one that is about to be referred to may look old.
 */
const GRACE_PERIOD = sql`interval '1 hour'`;
/** The writer of an unfinished object that has not changed for this long is dead. */
const ABANDONED_MS = 24 * 3_600_000;
/** Between two passes over all objects. They are rarely needed, as a transaction normally schedules a deletion. */
const PAUSE_MS = 6 * 3_600_000;
const RETRY_MS = 60_000;
const BATCH = 500;
/** Objects per run: a pass over ten million takes about four hours. */
const PER_RUN = 4_000;

type Context = Pick<WorkerContext, 'database' | 'objects' | 'log' | 'stopping'>;

/**
 * The mark phase of garbage collection: lists all objects, some in each run, and schedules the deletion of those
 * without a reference (decision 9). The sweep phase is pending-deletions.ts.
 */
export class OrphanCollector {
  readonly #context: Context;
  #list: AsyncIterator<StoredObject> | undefined;
  /** performance.now() from which the next pass is due. */
  #nextPassAt = 0;

  constructor(context: Context) {
    this.#context = context;
  }

  /** Continues a pass, or begins one where that is due. */
  async markSome(): Promise<void> {
    if (performance.now() < this.#nextPassAt) return;
    try {
      if (!this.#list && (await this.#isForeign())) return this.#endPass(RETRY_MS);
      if (!(await this.#markNext())) return;
      await this.#context.objects.removeAbandonedWrites(new Date(Date.now() - ABANDONED_MS));
      this.#endPass(PAUSE_MS);
    } catch (error) {
      this.#endPass(RETRY_MS);
      if (!isUnavailable(error)) throw error;
      this.#context.log.debug(
        { err: error },
        'the object store is unreachable: garbage collection waits',
      );
    }
  }

  #endPass(pauseMs: number): void {
    this.#list = undefined;
    this.#nextPassAt = performance.now() + pauseMs;
  }

  /** Returns true at the end of the pass. */
  async #markNext(): Promise<boolean> {
    this.#list ??= listObjects(this.#context.objects)[Symbol.asyncIterator]();
    let batch: string[] = [];
    for (let seen = 0; seen < PER_RUN; seen++) {
      const { done, value } = await this.#list.next();
      if (!done && Date.now() - value.modified.getTime() >= MIN_AGE_MS) batch.push(value.key);
      if (done || batch.length === BATCH) {
        await this.#mark(batch);
        batch = [];
      }
      if (done) return true;
    }
    await this.#mark(batch);
    return false;
  }

  /** What another installation stores has no row here. */
  async #isForeign(): Promise<boolean> {
    const { database, objects, log } = this.#context;
    const foreign = await findForeignStore(database.db, objects);
    if (foreign)
      log.error(foreign, 'the object store belongs to another installation; nothing is removed');
    return foreign !== undefined;
  }

  async #mark(keys: string[]): Promise<void> {
    if (keys.length === 0) return;
    const { db } = this.#context.database;
    const referenced = await findReferenced(db, keys);
    const unreferenced = keys.filter(key => !referenced.has(key));
    const claimed =
      unreferenced.length > 0 ? await findClaimedByOpenJobs(db, unreferenced) : new Set();
    const orphans = unreferenced.filter(key => !claimed.has(key)).sort();
    if (orphans.length === 0) return;
    await db
      .insert(pendingDeletions)
      .values(orphans.map(object => ({ object, due: sql`now() + ${GRACE_PERIOD}` })))
      .onConflictDoNothing();
    this.#context.log.info({ count: orphans.length }, 'orphaned objects will be removed');
  }
}
