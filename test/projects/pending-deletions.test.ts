import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { eq, type SQL, sql } from 'drizzle-orm';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { ADVISORY_LOCKS } from '../../shared/database/advisory-locks.ts';
import { type Database, openDatabase } from '../../shared/database/connect.ts';
import {
  artifacts,
  cacheEntries,
  installation,
  jobs,
  models,
  parts,
  pendingDeletions,
  projects,
  segments,
  uploads,
  views,
} from '../../shared/database/schema.ts';
import { unavailable } from '../../shared/errors/errors.ts';
import { newId } from '../../shared/ids.ts';
import { MARKER } from '../../shared/installation/store-marker.ts';
import { removeJobs } from '../../shared/jobs/remove-jobs.ts';
import { createLog } from '../../shared/process/log.ts';
import { FileStore } from '../../shared/storage/file-store.ts';
import type { ObjectStore } from '../../shared/storage/object-store.ts';
import { scheduleDeletion } from '../../shared/storage/pending-deletions.ts';
import { S3Store } from '../../shared/storage/s3-store.ts';
import { findReferenced } from '../../workers/upkeep/object-references.ts';
import { OrphanCollector } from '../../workers/upkeep/orphaned-objects.ts';
import { DeletionSweep } from '../../workers/upkeep/pending-deletions.ts';
import { untilLocked, withDatabase } from '../harness/databases/migrated-database.ts';

const given = withDatabase('objects');
const log = createLog({ level: 'silent', name: 'test' });
const stopping = new AbortController().signal;
let database: Database;
let folder: string;
let store: ObjectStore;

beforeAll(() => {
  database = given.database();
});
beforeEach(async () => {
  folder = join(given.path, newId());
  store = new FileStore(folder);
  const [own] = await database.db.select().from(installation);
  await store.put(MARKER, Buffer.from(own?.id ?? ''));
  await database.db.delete(pendingDeletions);
});

const context = () => ({ database, objects: store, log, stopping });
const sweep = (objects = store) => new DeletionSweep({ ...context(), objects }).run();
const listKeys = async (prefix = '') => {
  const found: string[] = [];
  for await (const { key } of store.list(prefix)) if (key !== MARKER) found.push(key);
  return found.sort();
};
const put = async (...keys: string[]) => {
  for (const key of keys) await store.put(key, Buffer.from('x'));
};
const pending = async () =>
  (await database.db.select().from(pendingDeletions)).map(row => row.object);

async function makeProject() {
  const { db } = database;
  const [project, model, upload] = [newId(), newId(), newId()];
  await db.insert(projects).values({ pid: project, name: 'p' });
  await db.insert(models).values({ mid: model, project, type: 't', name: 'm' });
  await db.insert(uploads).values({
    uid: upload,
    owner: 'o',
    model,
    parser: 'blob',
    parameters: {},
    aids: [],
    input: false,
  });
  return { project, model, upload };
}

async function makeJob(set: Partial<typeof jobs.$inferInsert> = {}): Promise<string> {
  const id = newId();
  const basis = { id, kind: 'video', queue: 'video', owner: 'o', payload: {} };
  await database.db.insert(jobs).values({ ...basis, ...set });
  return id;
}

/** One object of each kind that a row refers to; their keys. */
async function referToOneEach(): Promise<string[]> {
  const { db } = database;
  const { project, model, upload } = await makeProject();
  const job = await makeJob({ finished: new Date() });
  const video = `videos/${job}/${newId()}`;
  const keys = {
    artifact: `artifacts/${model}/${newId()}`,
    // A part that an artifact took over.
    taken: `uploads/${upload}/${newId()}`,
    cached: `videos/${newId()}/${newId()}`,
    part: `uploads/${upload}/${newId()}`,
    view: `views/${newId()}/${newId()}`,
    segment: `output/${job}/stdout-0-${newId()}`,
  };
  await db.insert(artifacts).values([
    { model, aid: 'a', kind: 'table', object: keys.artifact },
    { model, aid: 'b', kind: 'file', object: keys.taken },
  ]);
  await db.insert(cacheEntries).values({ project, key: 'k', object: keys.cached, type: 't' });
  await db
    .insert(parts)
    .values({ upload, file: 0, part: 0, size: 1, digest: '', object: keys.part });
  await db.insert(views).values({ id: newId(), source: 's', job, object: keys.view });
  await db.insert(segments).values({ job, stream: 1, start: 0, length: 1, object: keys.segment });
  await db
    .update(jobs)
    .set({ result: { object: video } })
    .where(eq(jobs.id, job));
  return [...Object.values(keys), video];
}

/** The store, with some of its methods done in another way. */
const withOther = (other: Partial<ObjectStore>): ObjectStore => ({
  put: (...given) => store.put(...given),
  get: (...given) => store.get(...given),
  stat: key => store.stat(key),
  remove: key => store.remove(key),
  list: prefix => store.list(prefix),
  removeAbandonedWrites: before => store.removeAbandonedWrites(before),
  freeBytes: () => store.freeBytes(),
  check: () => store.check(),
  ...other,
});

test('deletes scheduled objects but those that a row still refers to', async () => {
  const kept = await referToOneEach();
  const gone = Array.from({ length: 520 }, () => `uploads/${newId()}/${newId()}`);
  await put(...kept, ...gone);
  await database.db.transaction(tx => scheduleDeletion(tx, [...kept, null, ...gone, ...gone]));
  await Promise.all([sweep(), sweep()]);
  expect(await listKeys()).toEqual([...kept].sort());
  expect(await pending()).toEqual([]);
});

test('an object that loses another reference during its deletion is checked again', async () => {
  const { project } = await makeProject();
  const { db } = database;
  const object = `videos/${newId()}/${newId()}`;
  await put(object, 'videos/other/a');
  await db.insert(cacheEntries).values({ project, key: 'k', object, type: 't' });
  await scheduleDeletion(db, [object, 'videos/other/a']);
  // The reference is dropped after upkeep has checked it, and before upkeep is done.
  const slow = withOther({
    async remove(key: string) {
      await db.transaction(async tx => {
        await tx.delete(cacheEntries).where(eq(cacheEntries.object, object));
        await scheduleDeletion(tx, [object]);
      });
      await store.remove(key);
    },
  });
  await sweep(slow);
  expect(await pending()).toEqual([object]);
  await sweep();
  expect(await listKeys()).toEqual([]);
  expect(await pending()).toEqual([]);
});

test.each(['upload_parts', 'artifacts', 'table_views'])(
  'a video that moves into a cache while references to it are looked for is kept: in %s',
  async table => {
    const { db } = database;
    const { project } = await makeProject();
    const job = await makeJob({ state: 'succeeded', finished: new Date() });
    const object = `videos/${job}/${newId()}`;
    await db.update(jobs).set({ result: { object } }).where(eq(jobs.id, job));
    const referenced = await db.transaction(async tx => {
      await tx.execute(sql`lock table ${sql.identifier(table)}`);
      const looking = findReferenced(db, [object]);
      await untilLocked(db);
      await db.insert(cacheEntries).values({ project, key: 'k', object, type: 't' });
      await db.transaction(other => removeJobs(other, [job]));
      return { looking };
    });
    expect(await referenced.looking).toEqual(new Set([object]));
  },
);

const STUCK = 'videos/stuck/1';

test.each<{ what: string; reason: RegExp; objects: () => ObjectStore }>([
  {
    what: 'a path of the folder that is no file',
    reason: /directory/,
    objects: () => {
      mkdirSync(join(folder, 'objects', STUCK, 'inner'), { recursive: true });
      return store;
    },
  },
  {
    what: 'a key that the S3 server does not let go',
    reason: /AccessDenied/,
    objects: () =>
      withOther({
        async remove(key) {
          if (key === STUCK) throw unavailable('refused (AccessDenied)', 'Ask.', 2);
          await store.remove(key);
        },
      }),
  },
])('one object that cannot be removed keeps no other: $what', async ({ reason, objects }) => {
  const { db } = database;
  const others = Array.from({ length: 600 }, () => `uploads/${newId()}/${newId()}`);
  await put(...others);
  await scheduleDeletion(db, [STUCK, ...others]);
  await db
    .update(pendingDeletions)
    .set({ due: sql`now() - interval '1 day'` })
    .where(eq(pendingDeletions.object, STUCK));
  const lines: string[] = [];
  const log = createLog({ level: 'info', name: 'test', write: line => void lines.push(line) });
  const given = new DeletionSweep({ ...context(), objects: objects(), log });
  await given.run();
  expect(await listKeys('uploads/')).toEqual([]);
  expect(await pending()).toEqual([STUCK]);
  const due = sql<number>`extract(epoch from ${pendingDeletions.due} - now())::float8`;
  const [row] = await db.select({ due }).from(pendingDeletions);
  expect(row?.due).toBeGreaterThan(3_000);
  await db.update(pendingDeletions).set({ due: sql`now()` });
  await given.run();
  expect(lines.map(line => JSON.parse(line))).toEqual([
    expect.objectContaining({ level: 40, object: STUCK, msg: expect.stringMatching('removed') }),
  ]);
  expect(lines[0]).toMatch(reason);
});

test('pending deletions stay while the store is unreachable', async () => {
  await scheduleDeletion(database.db, ['videos/a/b']);
  const away = new S3Store({
    endpoint: 'http://127.0.0.1:1',
    region: 'us-east-1',
    bucket: 'windlass',
    accessKey: 'a',
    secretKey: 'secret',
  });
  await sweep(away);
  await new OrphanCollector({ ...context(), objects: away }).markSome();
  expect(await pending()).toEqual(['videos/a/b']);
});

/** A store whose objects are all `hours` hours old. */
function aged(hours: number): ObjectStore {
  return withOther({
    async *list(prefix: string) {
      for await (const found of store.list(prefix))
        yield { ...found, modified: new Date(found.modified.getTime() - hours * 3_600_000) };
    },
  });
}

test('the objects of a job are deleted with its record', async () => {
  const objects = { object: 'videos/b/1', poster: 'videos/b/2', sprite: 'videos/b/3' };
  const end = { state: 'succeeded', finished: new Date() } as const;
  const video = await makeJob({ ...end, result: { ...objects, type: 'video/mp4' } });
  const other = await makeJob({ ...end, result: {} });
  expect((await removeJobs(database.db, [video, other])).sort()).toEqual([video, other].sort());
  expect((await pending()).sort()).toEqual(Object.values(objects));
});

test('nothing is deleted while a backup copies objects', async () => {
  await put('videos/a/1');
  await scheduleDeletion(database.db, ['videos/a/1']);
  await database.db.transaction(async tx => {
    await tx.execute(sql`select pg_advisory_xact_lock(${ADVISORY_LOCKS.deletions})`);
    await sweep();
    expect([await listKeys(), await pending()]).toEqual([['videos/a/1'], ['videos/a/1']]);
  });
  await sweep();
  expect([await listKeys(), await pending()]).toEqual([[], []]);
});

test('an object that a backup copies is kept, where it lost its reference when the backup had begun', async () => {
  const { db } = database;
  const { project } = await makeProject();
  const object = `videos/${newId()}/${newId()}`;
  await put(object);
  await db.insert(cacheEntries).values({ project, key: 'k', object, type: 't' });
  const backup = openDatabase(given.url, { max: 1 });
  let hasBegun = false;
  // The backup begins right after the sweep has asked for the first time whether it may delete.
  const slow = new Proxy(db, {
    get(target, name) {
      if (name !== 'execute') return Reflect.get(target, name);
      return async (statement: SQL) => {
        const answer = await db.execute(statement);
        if (hasBegun) return answer;
        hasBegun = true;
        await backup.db.execute(sql`select pg_advisory_lock(${ADVISORY_LOCKS.deletions})`);
        // It has read the reference, which is dropped now.
        await db.delete(cacheEntries).where(eq(cacheEntries.object, object));
        await scheduleDeletion(db, [object]);
        return answer;
      };
    },
  });
  try {
    await new DeletionSweep({ ...context(), database: { ...database, db: slow } }).run();
    expect([await listKeys(), await pending()]).toEqual([[object], [object]]);
  } finally {
    await backup.close();
  }
  await sweep();
  expect([await listKeys(), await pending()]).toEqual([[], []]);
});

test('two workers do not remove the same objects', async () => {
  const keys = Array.from({ length: 600 }, () => `uploads/${newId()}/${newId()}`);
  await put(...keys);
  await scheduleDeletion(database.db, keys);
  const removed: string[] = [];
  const counting = withOther({
    async remove(key) {
      removed.push(key);
      await store.remove(key);
    },
  });
  await Promise.all([sweep(counting), sweep(counting)]);
  expect([removed.length, new Set(removed).size]).toEqual([600, 600]);
});

test('a sweep reads what it removes, however much is pending', async () => {
  const { db } = database;
  const MANY = 50_000;
  const readRows = async () => {
    await db.execute(sql`select pg_stat_force_next_flush()`);
    await db.execute(sql`select pg_stat_clear_snapshot()`);
    const [row] = await db.execute<{ n: number }>(sql`
      select (seq_tup_read + (select sum(idx_tup_read) from pg_stat_user_indexes
        where relname = 'pending_deletions'))::int as n
      from pg_stat_user_tables where relname = 'pending_deletions'`);
    return row?.n ?? 0;
  };
  await db.execute(sql`insert into pending_deletions (object, due)
    select 'uploads/' || n || '/a', now() - n * interval '1 ms' from generate_series(1, ${MANY}::int) n`);
  const stop = new AbortController();
  const stopped = withOther({ remove: async () => stop.abort() });
  const one = openDatabase(given.url, { max: 1 });
  try {
    const before = await readRows();
    await new DeletionSweep({
      log,
      objects: stopped,
      stopping: stop.signal,
      database: one,
    }).run();
    await one.close();
    expect((await readRows()) - before).toBeLessThan(5_000);
    expect(await db.$count(pendingDeletions)).toBe(MANY - 500);
  } finally {
    await one.close();
  }
});

test('marks objects without a reference or an open job, and deletes them an hour later', async () => {
  const { db } = database;
  const { project, model, upload } = await makeProject();
  const open = await makeJob({ model, project, upload });
  const view = newId();
  await db.insert(views).values({ id: view, source: 's', job: open });
  const day = 24 * 3_600_000;
  const expired = await makeJob({ finished: new Date(Date.now() - 1.1 * day) });
  const recent = await makeJob({ finished: new Date(Date.now() - 1.02 * day) });
  for (const job of [expired, recent])
    await db
      .update(jobs)
      .set({ result: { object: `videos/${job}/result` } })
      .where(eq(jobs.id, job));
  const kept = [
    ...(await referToOneEach()),
    ...[`videos/${open}/a`, `artifacts/${model}/a`, `uploads/${upload}/a`, `views/${view}/a`],
    `videos/${recent}/result`,
  ];
  const old = [
    ...[`videos/${expired}/result`, `videos/${recent}/other`, `output/${recent}/a`],
    ...[`artifacts/${newId()}/a`, `uploads/${newId()}/a`, `views/${newId()}/a`],
  ];
  await put(...kept, ...old);
  await new OrphanCollector({ ...context(), objects: aged(0.9) }).markSome();
  expect(await pending()).toEqual([]);
  await new OrphanCollector({ ...context(), objects: aged(1.1) }).markSome();
  expect((await pending()).sort()).toEqual([...old].sort());
  await sweep();
  expect(await listKeys()).toHaveLength(kept.length + old.length);
  await db.update(pendingDeletions).set({ due: sql`${pendingDeletions.due} - interval '1 hour'` });
  await sweep();
  expect(await listKeys()).toEqual([...kept].sort());
});

test('nothing is deleted from the store of another installation', async () => {
  await put('uploads/u/1');
  await store.put(MARKER, Buffer.from('another'));
  await new OrphanCollector({ ...context(), objects: aged(1.1) }).markSome();
  expect(await pending()).toEqual([]);
});

test('a pass continues where the last run ended, and the next pass is due hours later', async () => {
  const keys = Array.from({ length: 9_000 }, (_, i) => `uploads/u/${i}`);
  let listed = 0;
  const many = withOther({
    async *list(prefix: string) {
      if (prefix !== 'uploads/') return;
      for (const key of keys) {
        listed++;
        yield { key, size: 1, modified: new Date(0) };
      }
    },
  });
  const orphans = new OrphanCollector({ ...context(), objects: many });
  const counts = [];
  for (let run = 0; run < 5; run++) {
    await orphans.markSome();
    counts.push(listed);
  }
  expect(counts).toEqual([4_000, 8_000, 9_000, 9_000, 9_000]);
  expect(await pending()).toHaveLength(9_000);
});
