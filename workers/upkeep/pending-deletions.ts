import { sql } from 'drizzle-orm';
import { pendingDeletions } from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors.ts';
import type { ObjectStore } from '../../shared/storage/object-store.ts';
import type { WorkerContext } from '../context.ts';
import { findReferenced } from './object-references.ts';

const BATCH = 500;
/** Removals on their way at once. */
const AT_ONCE = 8;
/** Bounds one run: rows that another transaction has locked stay and are selected again. */
const BATCHES = 10;

type Context = Pick<WorkerContext, 'database' | 'objects' | 'log' | 'stopping'>;

/**
 * Removes objects that lost their last reference; see shared/storage/pending-deletions.ts. The rows go after the objects, so that what
 * is interrupted is done again; where the store is away all of it waits. Any number of workers may do this at once.
 */
export async function deletePendingObjects(context: Context): Promise<void> {
  for (let batch = 0; batch < BATCHES && !context.stopping.aborted; batch++) {
    try {
      if ((await removeBatch(context)) < BATCH) return;
    } catch (error) {
      if (!(error instanceof WindlassError) || error.code !== 'unavailable') throw error;
      return context.log.debug({ err: error }, 'the object store is away: its removals wait');
    }
  }
}

async function removeBatch({ database: { db }, objects }: Context): Promise<number> {
  const loose = await db
    .select({ object: pendingDeletions.object, since: sql<string>`${pendingDeletions.due}::text` })
    .from(pendingDeletions)
    .where(sql`${pendingDeletions.due} <= now()`)
    .orderBy(pendingDeletions.due)
    .limit(BATCH);
  if (loose.length === 0) return 0;
  const keys = loose.map(row => row.object);
  const referenced = await findReferenced(db, keys);
  await removeAll(
    objects,
    keys.filter(key => !referenced.has(key)),
  );
  // A row that was written again meanwhile stands for a reference lost after we looked. Rows that somebody holds are left
  // out: whoever waits for none cannot be waited for in a circle.
  const seen = sql.join(
    loose.map(({ object, since }) => sql`(${object}, ${since})`),
    sql`, `,
  );
  await db.execute(sql`
    delete from ${pendingDeletions} where object in (
      select object from ${pendingDeletions} where (object, due::text) in (${seen})
      for update skip locked)
    and (object, due::text) in (${seen})`);
  return loose.length;
}

async function removeAll(objects: ObjectStore, keys: string[]): Promise<void> {
  const left = keys.values();
  const removeSome = async () => {
    for (const key of left) await objects.remove(key);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, removeSome));
}
