import { eq, inArray, sql } from 'drizzle-orm';
import { beforeAll, expect, test } from 'vitest';
import { ColumnCache } from '../../api/tables/column-cache.ts';
import type { Database } from '../../shared/database/connect.ts';
import {
  artifacts,
  members,
  models,
  pendingDeletions,
  projects,
  uploads,
  users,
  views,
} from '../../shared/database/schema.ts';
import { newId } from '../../shared/ids.ts';
import { KeptStatistics } from '../../workers/parsers/kept-statistics.ts';
import {
  type PromotedArtifact,
  promoteArtifacts,
} from '../../workers/parsers/promote-artifacts.ts';
import { evictViews, lockViews } from '../../workers/parsers/table/view-quota.ts';
import { withDatabase } from '../harness/databases/migrated-database.ts';

const MB = 1 << 20;
const given = withDatabase('promotions');
let database: Database;

beforeAll(() => {
  database = given.database();
});

test('a parse promotes into its model where its owner may write, and into none that was deleted meanwhile', async () => {
  const { db } = database;
  const [project, grave, mid] = [newId(), newId(), newId()];
  await db.insert(projects).values([
    { pid: project, name: 'p' },
    { pid: grave, name: 'p', deleted: new Date() },
  ]);
  await db.insert(models).values({ mid, project, type: 't', name: 'm' });
  const [upload] = await db
    .insert(uploads)
    .values({
      uid: newId(),
      owner: 'u',
      model: mid,
      parser: 'blob',
      parameters: {},
      aids: ['a', 'b'],
      input: false,
    })
    .returning();
  if (!upload) throw new Error('no upload');
  const promote = (aid: string) =>
    db.transaction(tx =>
      promoteArtifacts(tx, {
        upload,
        project,
        made: [{ aid, kind: 'file', object: `artifacts/${mid}/${newId()}`, size: 1, madeOf: aid }],
        limits: { LIMIT_PROJECT_BYTES: 0, LIMIT_USER_BYTES: 0 },
      }),
    );
  await expect(promote('a')).rejects.toMatchObject({ code: 'forbidden' });
  await db.insert(members).values({ project, username: 'u', role: 'reader' });
  await expect(promote('a')).rejects.toMatchObject({ code: 'forbidden' });
  await db.update(members).set({ role: 'writer' }).where(eq(members.project, project));
  await db.insert(users).values({ username: 'u', passwordHash: '', disabled: true });
  await expect(promote('a')).rejects.toMatchObject({ code: 'forbidden' });
  await db.update(users).set({ disabled: false });
  await promote('a');
  // As DELETE /models/(mid) does: the project that it was in is there as before.
  await db.update(models).set({ project: grave }).where(eq(models.mid, mid));
  await expect(promote('b')).rejects.toMatchObject({ code: 'conflict' });
  const kept = await db
    .select({ aid: artifacts.aid })
    .from(artifacts)
    .where(eq(artifacts.model, mid));
  expect(kept).toEqual([{ aid: 'a' }]);
});

test('many artifacts are added to a model at once, and replace those of the upload before', async () => {
  const { db } = database;
  const [project, mid] = [newId(), newId()];
  await db.insert(projects).values({ pid: project, name: 'p' });
  await db.insert(members).values({ project, username: 'u', role: 'writer' });
  await db.insert(models).values({ mid, project, type: 't', name: 'm' });
  const [upload] = await db
    .insert(uploads)
    .values({
      uid: newId(),
      owner: 'u',
      model: mid,
      parser: 'zip',
      parameters: {},
      aids: ['z'],
      input: false,
    })
    .returning();
  if (!upload) throw new Error('no upload');
  const limits = { LIMIT_PROJECT_BYTES: 0, LIMIT_USER_BYTES: 0 };
  const make = (from: number, to: number, size: number, kind: 'file' | 'table' = 'file') =>
    Array.from({ length: to - from }, (_, i) => {
      const [aid, object] = [`z/${from + i}`, `artifacts/${mid}/${newId()}`];
      return { aid, kind, object, size, madeOf: 'z' };
    });
  const promote = (made: PromotedArtifact[]) =>
    db.transaction(tx => promoteArtifacts(tx, { upload, project, made, limits }));
  const first = make(0, 250, 1);
  // What another file or nobody's made is not of it.
  await promote([
    {
      aid: 'z/other',
      kind: 'file',
      object: `artifacts/${mid}/${newId()}`,
      size: 5,
      madeOf: 'z/other',
    },
  ]);
  await db
    .insert(artifacts)
    .values({ model: mid, aid: 'z/parameter', kind: 'parameter', value: '1' });
  await promote(first);
  await promote(make(50, 350, 10));
  await expect(promote([...make(400, 600, 1), ...make(300, 301, 1, 'table')])).rejects.toThrow(
    'the model has a file named z/300 already',
  );
  const sizes = await db
    .select({ size: artifacts.size, n: sql<number>`count(*)::int` })
    .from(artifacts)
    .where(eq(artifacts.model, mid))
    .groupBy(artifacts.size)
    .orderBy(artifacts.size);
  expect(sizes).toEqual([
    { size: 0, n: 1 },
    { size: 5, n: 1 },
    { size: 10, n: 300 },
  ]);
  const [model] = await db.select({ bytes: models.bytes }).from(models).where(eq(models.mid, mid));
  expect(model).toEqual({ bytes: 3_005 });
  const replaced = first.map(({ object }) => object);
  const pending = await db
    .select({ object: pendingDeletions.object })
    .from(pendingDeletions)
    .where(inArray(pendingDeletions.object, replaced));
  expect(pending).toHaveLength(250);
});

test('tables of the most statistics are stored, in statements that end in time and in bounded memory', async () => {
  const { db } = database;
  const [project, mid] = [newId(), newId()];
  await db.insert(projects).values({ pid: project, name: 'p' });
  await db.insert(members).values({ project, username: 'u', role: 'writer' });
  await db.insert(models).values({ mid, project, type: 't', name: 'm' });
  const aids = Array.from({ length: 40 }, (_, i) => `w${i}`);
  const given = { owner: 'u', model: mid, parser: 'csv', parameters: {}, aids, input: false };
  const [upload] = await db
    .insert(uploads)
    .values({ uid: newId(), ...given })
    .returning();
  if (!upload) throw new Error('no upload');
  const value = (k: number) => `${String.fromCodePoint(0x1f600 + k).repeat(78)}x`;
  const columns = Array.from({ length: 2_500 }, (_, i) => ({
    name: `c${i}`,
    type: 'text' as const,
    min: value(0),
    max: value(19),
    nulls: 0,
    top: Array.from({ length: 20 }, (_, k) => ({ value: value(k), count: 1 })),
  }));
  const packed = await new KeptStatistics().keep(columns, aids.length);
  const made = aids.map(aid => ({
    aid,
    kind: 'table' as const,
    object: `artifacts/${mid}/${newId()}`,
    size: 1,
    madeOf: aid,
    columns: packed,
  }));
  const limits = { LIMIT_PROJECT_BYTES: 0, LIMIT_USER_BYTES: 0 };
  const before = process.memoryUsage().rss;
  let peak = 0;
  const watch = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage().rss - before);
  }, 20);
  for (const _ of ['new', 'replaced'])
    await db.transaction(tx => promoteArtifacts(tx, { upload, project, made, limits }));
  clearInterval(watch);
  expect(peak).toBeLessThan(400 * MB);
  const stored = await db
    .select({ first: sql<unknown>`${artifacts.columns}->0` })
    .from(artifacts)
    .where(sql`${artifacts.model} = ${mid} and jsonb_array_length(${artifacts.columns}) = 2500`);
  expect(stored).toHaveLength(40);
  expect(stored[39]?.first).toMatchObject({ name: 'c0', type: 'text', nulls: 0 });
}, 120_000);

test('requests that need the columns of a table at once read them once, without what none of them needs', async () => {
  const { db } = database;
  const [project, model] = [newId(), newId()];
  await db.insert(projects).values({ pid: project, name: 'p' });
  await db.insert(models).values({ mid: model, project, type: 't', name: 'm' });
  const top = [{ value: 'b', count: 2 }];
  const text = { name: 's', type: 'text' as const, min: 'a', max: 'b', nulls: 1, unit: 'm' };
  const number = { name: 'n', type: 'number' as const, min: 1, max: 2, nulls: 0 };
  const columns = [Object.assign({ top }, text), number];
  const table = { model, aid: 't', object: `artifacts/${model}/t` };
  await db.insert(artifacts).values({ ...table, kind: 'table', columns });
  const cache = new ColumnCache();
  const found = await Promise.all(Array.from({ length: 10 }, () => cache.find(db, table)));
  expect(found.every(each => each === found[0])).toBe(true);
  expect(await cache.find(db, table)).toBe(found[0]);
  expect(found[0]).toEqual([{ name: 's', type: 'text', min: null, max: null, nulls: 1 }, number]);
  expect(await cache.describe(db, table)).toEqual([text, number]);
  expect(await cache.findTop(db, table, 's')).toEqual(top);
  expect(await cache.findTop(db, table, 'n')).toBe(null);
  const replaced = { model, aid: 't', object: `artifacts/${model}/u` };
  await expect(cache.find(db, replaced)).rejects.toMatchObject({ code: 'conflict' });
});

async function makeViews(source: string, sizes: number[]): Promise<void> {
  const rows = sizes.map((size, i) => ({
    id: `${source}/${i}`,
    source,
    job: newId(),
    object: `views/${source}/${i}`,
    size,
    // The first was used least lately.
    used: sql`now() - make_interval(mins => ${sizes.length - i})`,
  }));
  await database.db.insert(views).values(rows);
}

const room = (source: string, kept: number, tableSize: number) =>
  database.db.transaction(async tx => {
    await lockViews(tx, source);
    return (await evictViews(tx, { source, kept: `${source}/${kept}`, tableSize })).sort();
  });

const left = async (source: string) => {
  const rows = await database.db
    .select({ id: views.id })
    .from(views)
    .where(eq(views.source, source));
  return rows.map(({ id }) => Number(id.split('/')[1])).sort();
};

test('the views of a table take ten times its bytes at most: those used least lately go', async () => {
  const [source, other] = [newId(), newId()];
  await makeViews(other, [90 * MB]);
  await makeViews(
    source,
    [10, 10, 30, 30, 30].map(size => size * MB),
  );
  // One that is still being made takes nothing, and stays.
  await database.db
    .insert(views)
    .values({ id: `${source}/5`, source, job: newId(), used: new Date(0) });
  expect(await room(source, 4, 11 * MB)).toEqual([]);
  expect(await room(source, 4, 10 * MB)).toEqual([`views/${source}/0`]);
  expect(await left(source)).toEqual([1, 2, 3, 4, 5]);
  // The new one stays, also where it was asked for before the others were used, or is too large alone.
  expect(await room(source, 1, 4 * MB)).toEqual([`views/${source}/2`, `views/${source}/3`]);
  expect(await room(source, 4, 2 * MB)).toEqual([`views/${source}/1`]);
  expect(await left(source)).toEqual([4, 5]);
  expect(await left(other)).toEqual([0]);
});

test('the views of a small table have room all the same', async () => {
  const source = newId();
  await makeViews(source, [8 * MB, 8 * MB, 8 * MB]);
  expect(await room(source, 2, 10)).toEqual([`views/${source}/0`]);
  expect(await left(source)).toEqual([1, 2]);
});

test('a view that somebody uses just then is left, and not waited for', async () => {
  const source = newId();
  await makeViews(source, [8 * MB, 8 * MB, 8 * MB]);
  await database.db.transaction(async using => {
    await using
      .select()
      .from(views)
      .where(eq(views.id, `${source}/0`))
      .for('update');
    expect(await room(source, 2, 10)).toEqual([]);
  });
  expect(await room(source, 2, 10)).toEqual([`views/${source}/0`]);
});
