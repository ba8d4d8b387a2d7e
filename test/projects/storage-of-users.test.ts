import { eq, inArray, sql } from 'drizzle-orm';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import type { Database, Tx } from '../../shared/database/connect.ts';
import {
  artifacts,
  bookmarks,
  cacheEntries,
  jobs,
  models,
  projects,
  storageChanges,
  uploads,
  userStorage,
  users,
  views,
} from '../../shared/database/schema.ts';
import { newId } from '../../shared/ids.ts';
import { chargeUserStorage, storedBytes } from '../../shared/quotas/user-storage.ts';
import {
  addStorageChanges,
  countStorage,
  forgetStorageOfRemoved,
} from '../../workers/upkeep/user-storage.ts';
import { untilLocked, withDatabase } from '../harness/databases/migrated-database.ts';

const given = withDatabase('storage');
const stopping = new AbortController().signal;
let database: Database;
let user: string;

beforeAll(() => {
  database = given.database();
});
beforeEach(async () => {
  user = `user-${newId()}`;
  await database.db.insert(users).values({ username: user });
});

const context = () => ({ database, stopping });
async function stored(name = user): Promise<number> {
  const [row] = await database.db.execute<{ bytes: number }>(
    sql`select ${storedBytes(sql`${name}`)} as bytes`,
  );
  return row?.bytes ?? Number.NaN;
}
const changesOf = (name: string) =>
  database.db.select().from(storageChanges).where(eq(storageChanges.owner, name));
const countAgain = async () => {
  await database.db.update(userStorage).set({ counted: null });
  await countStorage(context());
};

async function makeModel(): Promise<{ pid: string; mid: string }> {
  const [pid, mid] = [newId(), newId()];
  await database.db.insert(projects).values({ pid, name: 'p' });
  await database.db.insert(models).values({ mid, project: pid, type: 't', name: 'm' });
  return { pid, mid };
}
const file = (mid: string, aid: string, size: number, storedBy: string | null = user) => ({
  model: mid,
  aid,
  kind: 'file' as const,
  object: `artifacts/${mid}/${newId()}`,
  size,
  storedBy,
});
const job = (kind: string, more: Partial<typeof jobs.$inferInsert> = {}) => ({
  id: newId(),
  kind,
  queue: 'remote',
  owner: user,
  payload: {},
  ...more,
});
const video = (bytes: number, hoursAgo = 0) => ({
  state: 'succeeded' as const,
  result: { object: 'videos/a/b', bytes },
  finished: sql`now() - make_interval(hours => ${hoursAgo})` as unknown as Date,
});

test('what is stored counts for who stored it, until it is gone, whoever removes it', async () => {
  const { db } = database;
  const { pid, mid } = await makeModel();
  await db.insert(artifacts).values([file(mid, 'a', 100), file(mid, 'b', 20, null)]);
  expect(await stored()).toBe(100);
  await db.update(artifacts).set({ size: 70 }).where(eq(artifacts.aid, 'a'));
  expect(await stored()).toBe(70);
  const cached = { project: pid, object: 'videos/a/b', type: 'video/mp4', storedBy: user };
  await db.insert(cacheEntries).values({ ...cached, key: 'k', size: 1_000 });
  const bookmark = { bid: newId(), project: pid, hash: newId(), content: '{}' };
  await db.insert(bookmarks).values({ ...bookmark, size: 2, storedBy: user });
  const view = { id: newId(), source: 's', job: newId(), object: `views/${newId()}` };
  await db.insert(views).values({ ...view, size: 10_000, storedBy: user });
  const upload = { uid: newId(), owner: user, model: mid, parser: 'blob', parameters: {} };
  await db.insert(uploads).values({ ...upload, aids: [], input: false });
  await db.update(uploads).set({ bytes: 100_000 }).where(eq(uploads.uid, upload.uid));
  expect(await stored()).toBe(111_072);
  await db.update(artifacts).set({ storedBy: 'somebody-else' }).where(eq(artifacts.aid, 'a'));
  expect([await stored(), await stored('somebody-else')]).toEqual([111_002, 70]);
  await countAgain();
  expect(await stored()).toBe(111_002);
  await db.delete(views).where(eq(views.id, view.id));
  // Foreign keys remove all below it.
  await db.delete(projects).where(eq(projects.pid, pid));
  expect([await stored(), await stored('somebody-else')]).toEqual([0, 0]);
});

test('output counts with its job, and a video for 25 hours', async () => {
  const { db } = database;
  const [command, made, old] = [job('command'), job('video'), job('video')];
  await db.insert(jobs).values([command, made, old]);
  const set = (id: string, values: object) => db.update(jobs).set(values).where(eq(jobs.id, id));
  await set(command.id, { stdoutBytes: 30, stderrBytes: 3 });
  await set(command.id, { stdoutBytes: 40, state: 'succeeded' });
  await set(made.id, video(500, 24));
  await set(old.id, video(9_000, 26));
  expect(await stored()).toBe(543);
  // An hour later.
  await db.update(storageChanges).set({ due: sql`due - interval '1 hour'` });
  expect(await stored()).toBe(43);
  await countAgain();
  expect(await stored()).toBe(543);
  await addStorageChanges(context());
  expect((await changesOf(user)).map(({ bytes }) => bytes)).toEqual([-500]);
  const nobody = `${user} (removed)`;
  await set(made.id, { owner: nobody });
  expect([await stored(), await stored(nobody)]).toEqual([43, 500]);
  await set(made.id, { owner: user });
  await db.delete(jobs).where(eq(jobs.owner, user));
  expect([await stored(), await stored(nobody)]).toEqual([0, 0]);
  await db.update(storageChanges).set({ due: sql`now()` });
  expect([await stored(), await stored(nobody)]).toEqual([0, 0]);
});

test('rows of before the migration, or of a restore, are counted; beside who writes meanwhile', async () => {
  const { db } = database;
  const { mid } = await makeModel();
  await db.transaction(async tx => {
    await tx.execute(sql`set local session_replication_role = replica`);
    await tx.insert(artifacts).values(file(mid, 'before', 1_000));
    await tx
      .insert(jobs)
      .values([job('command', { stdoutBytes: 200 }), job('video', video(30_000))]);
  });
  expect(await stored()).toBe(0);
  let commit = () => {};
  const held = new Promise<void>(resolve => {
    commit = resolve;
  });
  let written = () => {};
  const isWritten = new Promise<void>(resolve => {
    written = resolve;
  });
  const writing = db.transaction(async tx => {
    await tx.insert(artifacts).values(file(mid, 'beside', 5));
    written();
    await held;
  });
  await isWritten;
  await countStorage(context());
  expect(await stored()).toBe(31_200);
  commit();
  await writing;
  expect(await stored()).toBe(31_205);
  await addStorageChanges(context());
  expect(await stored()).toBe(31_205);
  // Its turn comes again after a week.
  await db.update(userStorage).set({ bytes: 1 }).where(eq(userStorage.owner, user));
  await countStorage(context());
  expect(await stored()).toBe(1);
  await db.update(userStorage).set({ counted: sql`now() - interval '8 days'` });
  await countStorage(context());
  expect(await stored()).toBe(31_205);
});

test('changes are added up while others write, and none is lost or added twice', async () => {
  const { db } = database;
  const { mid } = await makeModel();
  const write = async (n: number) => {
    for (let i = 0; i < 20; i++) await db.insert(artifacts).values(file(mid, `${n}/${i}`, 1));
  };
  const fold = async () => {
    for (let i = 0; i < 20; i++) await addStorageChanges(context());
  };
  await Promise.all([write(1), write(2), write(3), fold(), fold()]);
  await addStorageChanges(context());
  expect(await changesOf(user)).toEqual([]);
  expect(await stored()).toBe(60);
});

test('of two who store at once for one user, the second counts what the first stored', async () => {
  const { db } = database;
  const { mid } = await makeModel();
  const store = (aid: string, then?: (tx: Tx) => Promise<unknown>) =>
    db.transaction(async tx => {
      await tx.insert(artifacts).values(file(mid, aid, 60));
      await chargeUserStorage(tx, { user, added: 0, limit: 100 });
      await then?.(tx);
    });
  let second: Promise<void> | undefined;
  await store('a', async () => {
    second = store('b');
    second.catch(() => {});
    await untilLocked(db);
  });
  await expect(second).rejects.toMatchObject({ code: 'insufficient_storage' });
  expect(await stored()).toBe(60);
});

test('what a removed user left counts for nobody, and not for a later one of the same name', async () => {
  const { db } = database;
  const { mid } = await makeModel();
  await db.insert(artifacts).values(file(mid, 'left', 1_000));
  await addStorageChanges(context());
  await db.delete(users).where(eq(users.username, user));
  await forgetStorageOfRemoved(context());
  await addStorageChanges(context());
  await forgetStorageOfRemoved(context());
  await db.insert(users).values({ username: user });
  await countStorage(context());
  expect(await stored()).toBe(0);
  await db.delete(models).where(eq(models.mid, mid));
  expect(await stored()).toBe(0);
});

test('one user who cannot be counted keeps no other from being counted', async () => {
  const { db } = database;
  const [first, second] = [`a-${newId()}`, `b-${newId()}`];
  await db.insert(users).values([{ username: first }, { username: second }]);
  await countStorage(context());
  const isNamed = inArray(userStorage.owner, [first, second]);
  await db.update(userStorage).set({ bytes: 7, counted: null }).where(isNamed);
  await db.execute(sql`create function refuse() returns trigger language plpgsql as
    $$ begin raise 'not this one'; end $$`);
  await db.execute(sql`create trigger refuse before insert on user_storage for each row
    when (new.owner = ${sql.raw(`'${first}'`)}) execute function refuse()`);
  try {
    await expect(countStorage(context())).rejects.toMatchObject({
      cause: { message: 'not this one' },
    });
    expect([await stored(first), await stored(second)]).toEqual([7, 0]);
  } finally {
    await db.execute(sql`drop function refuse cascade`);
  }
});
