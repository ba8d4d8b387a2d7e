import { randomBytes } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { selectUploadsOf } from '../../api/uploads/select-uploads.ts';
import { toUploadSummary } from '../../api/uploads/upload-record.ts';
import { jobs, members, models, projects, uploads } from '../../shared/database/schema.ts';
import { newId } from '../../shared/ids.ts';
import { withDatabase } from '../harness/databases/migrated-database.ts';

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

  const rows = await selectUploadsOf(db, 'ada');
  const states = rows.map(({ upload, state }) => toUploadSummary(upload, state));
  expect(Object.fromEntries(states.map(({ id, state }) => [id, state]))).toEqual(expected);
  expect(JSON.stringify(rows).length).toBeLessThan(5_000);
});
