import { randomBytes } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { readPage } from '../../api/http/pagination.ts';
import { selectUploadsOf } from '../../api/uploads/select-uploads.ts';
import { toUploadSummary } from '../../api/uploads/upload-record.ts';
import { jobs, members, models, projects, uploads } from '../../shared/database/schema.ts';
import { newId } from '../../shared/ids.ts';
import { withDatabase } from '../harness/databases/migrated-database.ts';
import { countRowsRead } from '../harness/databases/rows-read.ts';

const given = withDatabase('upload_lists');

test('a list of uploads reads their states, and not the errors, which may be long', async () => {
  const { db } = given.database();
  const [pid, mid] = [newId(), newId()];
  await db.insert(projects).values({ pid, name: 'p', description: '' });
  await db.insert(members).values({ project: pid, username: 'ada', role: 'administrator' });
  await db.insert(models).values({ mid, project: pid, name: 'm', description: '', type: '' });
  const error = { code: 'parse_failed', detail: randomBytes(150_000).toString('hex') };
  const expected: Record<string, string> = {};
  async function add(state: string, job: { kept: boolean; ends: 'failed' | 'succeeded' } | null) {
    const uid = newId();
    const id = job && newId();
    expected[uid] = state;
    await db.insert(uploads).values({
      uid,
      owner: 'ada',
      model: mid,
      parser: 'csv',
      parameters: {},
      aids: ['a'],
      input: true,
      job: id,
      parseEnd:
        job && !job.kept
          ? { state: job.ends, version: 1, error, finished: new Date().toISOString() }
          : null,
    });
    if (id && job.kept)
      await db.insert(jobs).values({
        id,
        kind: 'parse',
        queue: 'parse',
        owner: 'ada',
        payload: {},
        error,
        state: job.ends,
        finished: sql`now()`,
      });
  }
  await add('open', null);
  for (const kept of [true, false]) {
    await add('failed', { kept, ends: 'failed' });
    await add('done', { kept, ends: 'succeeded' });
  }

  const { rows: selected, where } = selectUploadsOf(db, 'ada');
  const rows = await selected.where(where);
  const states = rows.map(({ upload, state }) => toUploadSummary(upload, state));
  expect(Object.fromEntries(states.map(({ id, state }) => [id, state]))).toEqual(expected);
  expect(JSON.stringify(rows).length).toBeLessThan(5_000);
});

test('a page reads as much as its own uploads, however many there are', async () => {
  const { sql } = given.database();
  const COUNT = 10_000;
  const idOf = (n: number) => String(n).padStart(26, '0');
  await sql`insert into projects (pid, name) values ('many', 'p')`;
  await sql`insert into project_members (project, username, role) values ('many', 'bea', 'writer')`;
  const ids = sql`select lpad(n::text, 26, '0') as id from generate_series(1, ${2 * COUNT}::int) n`;
  await sql`insert into models (mid, project, type, name) select id, 'many', 't', 'm' from (${ids})`;
  await sql`insert into jobs (id, kind, queue, owner, payload, state, finished)
    select id, 'parse', 'parse', 'bea', '{}', 'succeeded', now() from (${ids})`;
  await sql`insert into uploads (uid, owner, model, parser, parameters, aids, input, job)
    select id, case when id <= ${idOf(COUNT)} then 'cat' else 'bea' end, id, 'csv', '{}', '{}', true, id from (${ids})`;
  const TABLES = ['uploads', 'models', 'jobs', 'projects', 'project_members'];
  for (const table of TABLES) await sql`analyze ${sql(table)}`;
  const order = { by: uploads.uid, key: 'id' } as const;
  // Those of another user come before.
  for (const first of [COUNT + 1, COUNT + COUNT / 2]) {
    const after = first === COUNT + 1 ? undefined : idOf(first - 1);
    let listed: string[] = [];
    const read = await countRowsRead(given, TABLES, async ({ db }) => {
      const { rows, where } = selectUploadsOf(db, 'bea');
      const page = await readPage(rows, { limit: 10, after }, { ...order, where }, row =>
        toUploadSummary(row.upload, row.state),
      );
      listed = page.items.map(({ id }) => id);
    });
    expect(listed).toEqual(Array.from({ length: 10 }, (_, n) => idOf(first + n)));
    for (const table of TABLES) expect([table, (read[table] ?? 0) < 100]).toEqual([table, true]);
  }
});
