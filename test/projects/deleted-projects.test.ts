import { eq, inArray, sql } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Database } from '../../shared/database/connect.ts';
import { Notifications } from '../../shared/database/notifications.ts';
import {
  artifacts,
  bookmarks,
  cacheEntries,
  jobs,
  members,
  models,
  parts,
  pendingDeletions,
  projects,
  uploads,
  views,
} from '../../shared/database/schema.ts';
import { newId } from '../../shared/ids.ts';
import { createLog } from '../../shared/process/log.ts';
import { purgeDeletedProjects } from '../../workers/upkeep/deleted-projects.ts';
import { withDatabase } from '../harness/databases/migrated-database.ts';
import { countRowsRead } from '../harness/databases/rows-read.ts';
import { waitFor } from '../harness/wait-for.ts';

const given = withDatabase('purge');
const MANY = 250;
let database: Database;
let notifications: Notifications;

beforeAll(async () => {
  database = given.database();
  notifications = new Notifications(database, createLog({ level: 'silent', name: 'test' }));
}, 60_000);
afterAll(async () => {
  await notifications?.close();
});

const purge = () =>
  purgeDeletedProjects({ database, notifications, stopping: new AbortController().signal });

/** A project with more than one batch of everything, and the objects of all that. */
async function fillProject() {
  const { db } = database;
  const [pid, mid, uid] = [newId(), newId(), newId()];
  const names = Array.from({ length: MANY }, (_, i) => `${i}`);
  const objectsOf = (kind: string) => names.map(name => `${kind}/${pid}/${name}`);
  const [files, pieces, videos] = [
    objectsOf('artifacts'),
    objectsOf('uploads'),
    objectsOf('videos'),
  ];
  const view = `views/${pid}/0`;
  await db.insert(projects).values({ pid, name: 'p' });
  await db.insert(members).values({ project: pid, username: 'u', role: 'administrator' });
  await db
    .insert(models)
    .values([
      { mid, project: pid, type: 't', name: 'full' },
      ...names.map(name => ({ mid: newId(), project: pid, type: 't', name })),
    ]);
  await db
    .insert(artifacts)
    .values([
      ...files.map((object, i) => ({ model: mid, aid: `f${i}`, kind: 'table' as const, object })),
      ...names.map(aid => ({ model: mid, aid, kind: 'parameter' as const, value: '1' })),
    ]);
  const source = files[7] ?? '';
  await db.insert(views).values({ id: newId(), source, job: newId(), object: view });
  await db.insert(uploads).values({
    uid,
    owner: 'u',
    model: mid,
    parser: 'blob',
    parameters: {},
    aids: [],
    input: false,
  });
  await db
    .insert(parts)
    .values(
      pieces.map((object, part) => ({ upload: uid, file: 0, part, size: 1, digest: '', object })),
    );
  await db
    .insert(cacheEntries)
    .values(videos.map((object, i) => ({ project: pid, key: `${i}`, object, type: 't' })));
  await db
    .insert(bookmarks)
    .values(names.map(hash => ({ bid: newId(), project: pid, hash, content: '{}' })));
  return { pid, mid, uid, objects: [...files, ...pieces, ...videos, view] };
}

async function addJob(set: Partial<typeof jobs.$inferInsert>): Promise<string> {
  const id = newId();
  const basis = { id, kind: 'video', queue: 'video', owner: 'u', payload: {} };
  await database.db.insert(jobs).values({ ...basis, ...set });
  return id;
}

const remove = (pid: string) =>
  database.db.update(projects).set({ deleted: sql`now()` }).where(eq(projects.pid, pid));
const isThere = async (pid: string) =>
  (await database.db.select().from(projects).where(eq(projects.pid, pid))).length > 0;
const scheduled = async () =>
  (await database.db.select().from(pendingDeletions)).map(row => row.object).sort();

/** How many rows there are below a project. */
async function countBelow({ pid, mid, uid }: { pid: string; mid: string; uid: string }) {
  const { db } = database;
  return {
    models: await db.$count(models, eq(models.project, pid)),
    artifacts: await db.$count(artifacts, eq(artifacts.model, mid)),
    uploads: await db.$count(uploads, eq(uploads.uid, uid)),
    parts: await db.$count(parts, eq(parts.upload, uid)),
    cache: await db.$count(cacheEntries, eq(cacheEntries.project, pid)),
    bookmarks: await db.$count(bookmarks, eq(bookmarks.project, pid)),
    members: await db.$count(members, eq(members.project, pid)),
  };
}

test('removes all rows of a deleted project, schedules its objects for deletion, and keeps another project', async () => {
  const [dead, alive] = [await fillProject(), await fillProject()];
  await remove(dead.pid);
  const ofProject = await addJob({ project: dead.pid, state: 'running', leaseToken: 'x' });
  const ofModel = await addJob({ model: dead.mid });
  const other = await addJob({ project: alive.pid });
  await purge();
  expect(await isThere(dead.pid)).toBe(false);
  const none = {
    models: 0,
    artifacts: 0,
    uploads: 0,
    parts: 0,
    cache: 0,
    bookmarks: 0,
    members: 0,
  };
  expect(await countBelow(dead)).toEqual(none);
  expect(await scheduled()).toEqual([...dead.objects].sort());
  expect(await countBelow(alive)).toEqual({
    models: MANY + 1,
    artifacts: 2 * MANY,
    uploads: 1,
    parts: MANY,
    cache: MANY,
    bookmarks: MANY,
    members: 1,
  });
  const rows = await database.db
    .select({ id: jobs.id, state: jobs.state, cancel: sql`${jobs.cancelRequested} is not null` })
    .from(jobs)
    .where(inArray(jobs.id, [ofProject, ofModel, other]));
  // Ids of one millisecond are in no order.
  expect(Object.fromEntries(rows.map(({ id, ...row }) => [id, row]))).toEqual({
    [ofProject]: { state: 'running', cancel: true },
    [ofModel]: { state: 'cancelled', cancel: true },
    [other]: { state: 'queued', cancel: false },
  });
});

test('several workers share the rows, and lose no object', async () => {
  await database.db.delete(pendingDeletions);
  const dead = [await fillProject(), await fillProject()];
  for (const { pid } of dead) await remove(pid);
  await Promise.all([purge(), purge(), purge()]);
  // A worker that found only locked rows left the rest to a later run.
  await waitFor(
    async () => {
      await purge();
      return !(await isThere(dead[0]?.pid ?? '')) && !(await isThere(dead[1]?.pid ?? ''));
    },
    { what: 'both projects to go' },
  );
  expect(await scheduled()).toEqual(dead.flatMap(({ objects }) => objects).sort());
});

test('a job that has ended keeps neither its project nor the projects after it', async () => {
  const pids = Array.from({ length: 21 }, newId);
  for (const pid of pids) {
    await database.db.insert(projects).values({ pid, name: 'p' });
    await addJob({ project: pid, state: 'succeeded', finished: new Date() });
    await remove(pid);
  }
  const areThere = async () => (await Promise.all(pids.map(isThere))).some(Boolean);
  const began = performance.now();
  await purge();
  // A run that had time left has left nothing.
  if (performance.now() - began < 5_000) expect(await areThere()).toBe(false);
  await waitFor(async () => purge().then(async () => !(await areThere())), {
    what: 'the projects to go',
  });
});

test('projects that cannot be removed do not keep the others', async () => {
  const { db } = database;
  const pids = Array.from({ length: 21 }, newId);
  for (const pid of pids) {
    await db.insert(projects).values({ pid, name: 'stuck' });
    await remove(pid);
  }
  await db.execute(sql`create function refuse() returns trigger language plpgsql as
    $$ begin raise 'stuck'; end $$`);
  await db.execute(sql`create trigger refuse before delete on ${projects}
    for each row when (old.name = 'stuck') execute function refuse()`);
  const later = newId();
  await db.insert(projects).values({ pid: later, name: 'p' });
  await remove(later);
  await waitFor(
    async () => {
      await expect(purge()).rejects.toThrow();
      return !(await isThere(later));
    },
    { what: 'the project after those to go', intervalMs: 0 },
  );
  await db.execute(sql`drop trigger refuse on ${projects}`);
  await db.delete(projects).where(inArray(projects.pid, pids));
});

test('thousands of empty projects of one user do not hold up what another one deletes', async () => {
  const { db } = database;
  await db.execute(sql`insert into projects (pid, name, deleted)
    select 'empty-' || n, 'p', now() from generate_series(1, 3000) n`);
  await db.execute(sql`insert into project_members (project, username, role)
    select pid, 'u', 'administrator' from projects where pid like 'empty-%'`);
  const full = newId();
  await db.insert(projects).values({ pid: full, name: 'p' });
  await db.insert(models).values({ mid: newId(), project: full, type: 't', name: 'm' });
  await remove(full);
  await purge();
  expect(await isThere(full)).toBe(false);
  // One by one, a run removed 250.
  const isLeft = sql`${projects.pid} like 'empty-%'`;
  expect(await db.$count(projects, isLeft)).toBeLessThan(2_500);
  await waitFor(async () => purge().then(async () => (await db.$count(projects, isLeft)) === 0), {
    what: 'all of them to go',
  });
});

test('what belongs to others is not read, however large a share the project has', async () => {
  const { db } = database;
  const OTHERS = 18_000;
  const OWN = 2_000;
  const TABLES = ['models', 'artifacts', 'uploads', 'upload_parts'];
  const fill = async (prefix: string, count: number) => {
    const pid = newId();
    await db.insert(projects).values({ pid, name: 'p' });
    const ids = sql`select ${prefix} || lpad(n::text, 25, '0') as id from generate_series(1, ${count}::int) n`;
    await db.execute(
      sql`insert into models (mid, project, type, name) select id, ${pid}, 't', 'n' from (${ids})`,
    );
    await db.execute(
      sql`insert into artifacts (model, aid, kind, value) select id, 'p', 'parameter', '1' from (${ids})`,
    );
    await db.execute(sql`insert into uploads (uid, owner, model, parser, parameters, aids, input)
      select id, 'u', id, 'blob', '{}', '{}', false from (${ids})`);
    await db.execute(sql`insert into upload_parts (upload, file, part, size, digest, object)
      select id, 0, 0, 1, '', 'uploads/' || id from (${ids})`);
    return pid;
  };
  await fill('a', OTHERS);
  const pid = await fill('z', OWN);
  for (const table of TABLES) await db.execute(sql`analyze ${sql.identifier(table)}`);
  await remove(pid);
  const stopping = new AbortController().signal;
  const read = await countRowsRead(given, TABLES, one =>
    waitFor(
      async () => {
        await purgeDeletedProjects({ database: one, notifications, stopping });
        return !(await isThere(pid));
      },
      { what: 'the project to go' },
    ),
  );
  // A statement of 100 rows that reads those of others reads 180 for each.
  for (const table of TABLES) expect([table, (read[table] ?? 0) / OWN < 20]).toEqual([table, true]);
});
