import { text } from 'node:stream/consumers';
import { isNull, sql } from 'drizzle-orm';
import type { Db } from '../database/connect.ts';
import { installation } from '../database/schema.ts';
import { unavailable, WindlassError } from '../errors/errors.ts';
import { OBJECT_PREFIXES } from '../jobs/object-keys.ts';
import { MissingObject, type ObjectStore, type StoredObject } from '../storage/object-store.ts';

/** Under this key a store has the id of the installation whose objects it holds. */
export const MARKER = 'installation';
/** An id is shorter. Whatever else is there need not be read whole. */
const MAX_MARKER_BYTES = 100;

export const OF_ANOTHER = {
  problem: 'The object store is that of another installation.',
  hint: `Correct S3_BUCKET, DATA_DIR or DATABASE_URL: each installation needs a store of its own. If the other one is given up, or this database is an earlier state of it, remove the object "${MARKER}".`,
};

const NOT_OURS = {
  problem: 'The object store holds objects, and the database is new.',
  hint: `Correct S3_BUCKET, DATA_DIR or DATABASE_URL: what no row refers to would be removed. If nobody needs those objects, remove them.`,
};

/** Stores that had the right id. One that has lost it was replaced, whatever it has got since. */
const confirmed = new WeakSet<ObjectStore>();

/**
 * The problem, and a hint, where the store is not that of this database: an unmounted disk and a wrong bucket look
 * empty, and upkeep removes what no row refers to. A store without a marker (new, copied, or of 0.1.0) gets one
 * unless most objects of the database are missing, or another store had one and nothing proves this to be its copy.
 */
export async function findForeignStore(
  db: Db,
  objects: ObjectStore,
): Promise<{ problem: string; hint: string } | undefined> {
  const [own] = await db.select().from(installation);
  const id = own?.id ?? '';
  const found = await readMarker(objects);
  if (found === id) {
    confirmed.add(objects);
    if (!own?.storeMarked) await rememberMark(db);
    return undefined;
  }
  if (found !== undefined) return OF_ANOTHER;
  if ((await isNew(db)) && (await holdsObjects(objects))) return NOT_OURS;
  const references = await sampleReferences(db);
  if (confirmed.has(objects) || (await lacksMost(objects, references)))
    return {
      problem:
        'The object store is not that of this database, which refers to objects that are not there.',
      hint: `Mount its disk, correct S3_BUCKET or DATA_DIR, or copy the objects there. If they are lost, store the text ${id} as the object "${MARKER}".`,
    };
  if (own?.storeMarked && references.length === 0)
    return {
      problem:
        'The object store is not the one that this database has used: it holds nothing of it.',
      hint: `Mount its disk, correct S3_BUCKET or DATA_DIR, or copy all objects there. If it is to be a new one, store the text ${id} as the object "${MARKER}".`,
    };
  try {
    await objects.put(MARKER, Buffer.from(id));
    await rememberMark(db);
  } catch (error) {
    // A full disk must not keep the service from starting; /readyz tries again.
    if (!(error instanceof WindlassError) || error.code !== 'insufficient_storage') throw error;
  }
  return undefined;
}

/** Throws `unavailable` where the store is not that of this database: there nothing is known of an object that is missing. */
export async function assertOwnStore(db: Db, objects: ObjectStore): Promise<void> {
  const foreign = await findForeignStore(db, objects);
  if (foreign) throw unavailable(foreign.problem, foreign.hint, 5);
}

/** The error itself, but an outage for an object that is missing where the store is not that of this database. */
export async function explainMissingObject(
  db: Db,
  objects: ObjectStore,
  error: unknown,
): Promise<unknown> {
  if (!(error instanceof MissingObject)) return error;
  return assertOwnStore(db, objects).then(
    () => error,
    (outage: unknown) => outage,
  );
}

const rememberMark = (db: Db) =>
  db.update(installation).set({ storeMarked: sql`now()` }).where(isNull(installation.storeMarked));

/** Undefined where there is none. */
export async function readMarker(objects: ObjectStore): Promise<string | undefined> {
  try {
    const found = await objects.get(MARKER, { range: { start: 0, end: MAX_MARKER_BYTES - 1 } });
    return (await text(found)).trim();
  } catch (error) {
    if (error instanceof WindlassError && error.code === 'not_found') return undefined;
    throw error;
  }
}

/** Whether nothing was ever done with the database: then the objects of a store are somebody else's. */
async function isNew(db: Db): Promise<boolean> {
  const [row] = await db.execute<{ used: boolean }>(
    sql`select exists (select from projects) or exists (select from jobs) as used`,
  );
  return row?.used === false;
}

async function holdsObjects(objects: ObjectStore): Promise<boolean> {
  for await (const _ of listObjects(objects)) return true;
  return false;
}

/** All that Windlass stores: a bucket may hold other things, too. */
export async function* listObjects(objects: ObjectStore): AsyncGenerator<StoredObject> {
  for (const prefix of OBJECT_PREFIXES) yield* objects.list(prefix);
}

/** Some of the objects that rows refer to for as long as they are there. */
async function sampleReferences(db: Db): Promise<string[]> {
  const rows = await db.execute<{ object: string }>(sql`
    (select object from artifacts where object is not null limit 5)
    union all (select object from cache_entries where object is not null limit 5)
    union all (select object from upload_parts where object is not null limit 5)
    union all (select object from job_segments limit 5)`);
  return rows.map(({ object }) => object);
}

async function lacksMost(objects: ObjectStore, keys: string[]): Promise<boolean> {
  let missing = 0;
  for (const key of keys) if (!(await objects.stat(key))) missing++;
  return missing > keys.length / 2;
}
