import { sql } from 'drizzle-orm';
import { areDeletionsHeld } from '../../shared/database/deletion-hold.ts';
import { pendingDeletions } from '../../shared/database/schema.ts';
import type { WorkerContext } from '../context.ts';
import { isUnavailable } from '../engine/retry.ts';
import { findReferenced } from './object-references.ts';

const BATCH = 500;
const CONCURRENCY = 8;
/** Bounds one run: rows that another transaction has locked stay and are selected again. */
const BATCHES = 10;

type Context = Pick<WorkerContext, 'database' | 'objects' | 'log' | 'stopping'>;

/**
 * The sweep phase of garbage collection: removes the objects whose deletion is due unless a row refers to them
 * (decision 9). Removes each row after its object, so that an interrupted deletion is repeated.
 */
export async function deletePendingObjects(context: Context): Promise<void> {
  for (let batch = 0; batch < BATCHES && !context.stopping.aborted; batch++) {
    try {
      if ((await deleteBatch(context)) < BATCH) return;
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      return context.log.debug({ err: error }, 'the object store is away: pending deletions wait');
    }
  }
}

async function deleteBatch({ database: { db }, objects }: Context): Promise<number> {
  if (await areDeletionsHeld(db)) return 0;
  const pending = await db
    .select({ object: pendingDeletions.object, due: sql<string>`${pendingDeletions.due}::text` })
    .from(pendingDeletions)
    .where(sql`${pendingDeletions.due} <= now()`)
    .orderBy(pendingDeletions.due)
    .limit(BATCH);
  if (pending.length === 0) return 0;
  const keys = pending.map(row => row.object);
  const referenced = await findReferenced(db, keys);
  const left = keys.filter(key => !referenced.has(key)).values();
  const deleteSome = async () => {
    for (const key of left) await objects.remove(key);
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, deleteSome));
  // A row with a new due time stands for a reference that was dropped after the query above: it stays. Skips locked
  // rows to avoid deadlocks.
  const pairs = pending.map(({ object, due }) => sql`(${object}, ${due})`);
  const seen = sql.join(pairs, sql`, `);
  await db.execute(sql`
    delete from ${pendingDeletions} where object = any(array(
      select object from ${pendingDeletions} where (object, due::text) in (${seen})
      for update skip locked))
    and (object, due::text) in (${seen})`);
  return pending.length;
}
