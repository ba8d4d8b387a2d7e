import { type SQL, sql } from 'drizzle-orm';
import { areDeletionsHeld } from '../../shared/database/deletion-hold.ts';
import { pendingDeletions } from '../../shared/database/schema.ts';
import type { WorkerContext } from '../context.ts';
import { isUnavailable } from '../engine/retry.ts';
import { findReferenced } from './object-references.ts';

const BATCH = 500;
const CONCURRENCY = 8;
/** Bounds one run: rows that another transaction has locked stay and are selected again. */
const BATCHES = 10;
/** Other workers leave a batch alone for so long; after a worker's death its batch is due again. */
const CLAIMED = sql`interval '5 minutes'`;
/** An object that cannot be removed is due again after so long: it must not be selected before all others each time. */
const POSTPONED = sql`interval '1 hour'`;
const WARN_AGAIN_MS = 3_600_000;

type Context = Pick<WorkerContext, 'database' | 'objects' | 'log' | 'stopping'>;

interface Row {
  object: string;
  due: string;
}

/**
 * The sweep phase of garbage collection: removes the objects whose deletion is due unless a row refers to them
 * (decision 9). Removes each row after its object, so that an interrupted deletion is repeated.
 */
export class DeletionSweep {
  readonly #context: Context;
  #warnedAt = Number.NEGATIVE_INFINITY;

  constructor(context: Context) {
    this.#context = context;
  }

  async run(): Promise<void> {
    const { log, stopping } = this.#context;
    try {
      for (let batch = 0; batch < BATCHES && !stopping.aborted; batch++)
        if ((await this.#deleteBatch()) < BATCH) return;
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      log.debug({ err: error }, 'the object store is unreachable: pending deletions wait');
    }
  }

  async #deleteBatch(): Promise<number> {
    const { db } = this.#context.database;
    if (await areDeletionsHeld(db)) return 0;
    const pending = await this.#claimBatch();
    // A backup that begins after this reads its rows when these objects had already lost their references.
    if (await areDeletionsHeld(db)) {
      await this.#postpone(pending, sql`interval '0'`);
      return 0;
    }
    const keys = pending.map(row => row.object);
    const referenced = await findReferenced(db, keys);
    const done = new Set(referenced);
    const failed = new Set<string>();
    const left = keys.filter(key => !referenced.has(key)).values();
    const removeSome = async () => {
      for (const key of left) (await this.#remove(key)) ? done.add(key) : failed.add(key);
    };
    const ends = await Promise.allSettled(Array.from({ length: CONCURRENCY }, removeSome));
    await this.#change(
      pending.filter(row => done.has(row.object)),
      which => sql`delete from ${pendingDeletions} where ${which}`,
    );
    const isFailed = (row: Row) => failed.has(row.object);
    await this.#postpone(pending.filter(isFailed), POSTPONED);
    const isUntried = (row: Row) => !done.has(row.object) && !isFailed(row);
    await this.#postpone(pending.filter(isUntried), sql`interval '0'`);
    for (const end of ends) if (end.status === 'rejected') throw end.reason;
    return pending.length;
  }

  /** Rows that are due, which no other worker has. */
  #claimBatch(): Promise<Row[]> {
    const { db } = this.#context.database;
    const due = db
      .select({ object: pendingDeletions.object })
      .from(pendingDeletions)
      .where(sql`${pendingDeletions.due} <= now()`)
      .orderBy(pendingDeletions.due)
      .limit(BATCH)
      .for('update', { skipLocked: true });
    return db
      .update(pendingDeletions)
      .set({ due: sql`now() + ${CLAIMED}` })
      .where(sql`${pendingDeletions.object} = any(array(${due}))`)
      .returning({
        object: pendingDeletions.object,
        due: sql<string>`${pendingDeletions.due}::text`,
      });
  }

  /** Returns false where the store works and does not remove this object. Throws where it is unreachable. */
  async #remove(object: string): Promise<boolean> {
    const { log, objects } = this.#context;
    try {
      await objects.remove(object);
      return true;
    } catch (error) {
      await objects.check();
      const now = performance.now();
      if (now - this.#warnedAt < WARN_AGAIN_MS) return false;
      this.#warnedAt = now;
      log.warn({ err: error, object }, 'an object cannot be removed: it is tried again each hour');
      return false;
    }
  }

  #postpone(rows: Row[], by: SQL): Promise<void> {
    const due = sql`now() + ${by}`;
    return this.#change(
      rows,
      which => sql`update ${pendingDeletions} set due = ${due} where ${which}`,
    );
  }

  /**
   * Changes these rows. One with a new due time stands for a reference dropped after it was read: it stays. Skips locked
   * rows to avoid deadlocks.
   */
  async #change(rows: Row[], change: (which: SQL) => SQL): Promise<void> {
    if (rows.length === 0) return;
    const pairs = rows.map(({ object, due }) => sql`(${object}, ${due})`);
    const seen = sql`(object, due::text) in (${sql.join(pairs, sql`, `)})`;
    const free = sql`select object from ${pendingDeletions} where ${seen} for update skip locked`;
    await this.#context.database.db.execute(change(sql`object = any(array(${free})) and ${seen}`));
  }
}
