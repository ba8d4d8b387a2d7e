import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Database, openDatabase } from '../../shared/database/connect.ts';
import { endIdleUploads } from '../../workers/upkeep/idle-uploads.ts';
import { withDatabase } from '../harness/databases/migrated-database.ts';
import { waitFor } from '../harness/wait-for.ts';

const given = withDatabase('kept_parts');
let database: Database;
beforeAll(() => {
  database = openDatabase(given.url, { max: 1 });
});
afterAll(() => database?.close());

const sweep = () =>
  endIdleUploads({
    database,
    config: { UPLOAD_IDLE_TIMEOUT: 60 },
    stopping: new AbortController().signal,
    notifications: { publish() {} } as never,
  });

test('parts that another parse has just begun to read are kept, although they were due', async () => {
  const { sql } = given.database();
  await sql`insert into projects (pid, name) values ('p', 'p')`;
  await sql`insert into models (mid, project, type, name) values ('m', 'p', 't', 'm')`;
  for (const uid of ['repeated', 'failed']) {
    await sql`insert into uploads (uid, owner, model, parser, parameters, aids, input, job)
      values (${uid}, 'ada', 'm', 'csv', '{}', '{a}', false, ${`${uid} once`})`;
    await sql`insert into upload_parts (upload, file, part, size, digest, object)
      values (${uid}, 0, 0, 1, '', ${uid})`;
    await sql`insert into jobs (id, kind, queue, owner, payload, state, finished)
      values (${`${uid} once`}, 'parse', 'parse', 'ada', '{}', 'failed', now() - interval '1 hour')`;
  }
  let settled = false;
  let sweeping: Promise<void> | undefined;
  await sql.begin(async tx => {
    await tx`select from uploads where uid = 'repeated' for update`;
    sweeping = sweep().finally(() => {
      settled = true;
    });
    const waits = () => sql`select from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`;
    await waitFor(async () => settled || (await waits()).length > 0, { what: 'the upkeep' });
    await tx`insert into jobs (id, kind, queue, owner, payload)
      values ('repeated twice', 'parse', 'parse', 'ada', '{}')`;
    await tx`update uploads set job = 'repeated twice' where uid = 'repeated'`;
  });
  await sweeping;
  expect(await sql`select upload from upload_parts`).toEqual([{ upload: 'repeated' }]);
});

test('of uploads whose owner may no longer write, those that are parsed are kept', async () => {
  const { sql } = given.database();
  await sql`delete from uploads`;
  await sql`insert into projects (pid, name) values ('left', 'left')`;
  await sql`insert into models (mid, project, type, name) values ('of left', 'left', 't', 'm')`;
  await sql`insert into project_members (project, username, role)
    values ('left', 'writes', 'writer'), ('left', 'reads', 'reader')`;
  for (const owner of ['writes', 'reads', 'gone']) {
    for (const state of ['open', 'failed', 'running'] as const) {
      const [uid, job] = [`${owner} ${state}`, state === 'open' ? null : `of ${owner} ${state}`];
      await sql`insert into uploads (uid, owner, model, parser, parameters, aids, input, job)
        values (${uid}, ${owner}, 'of left', 'csv', '{}', '{a}', false, ${job})`;
      await sql`insert into upload_parts (upload, file, part, size, digest, object)
        values (${uid}, 0, 0, 1, '', ${uid})`;
      if (job === null) continue;
      await sql`insert into jobs (id, kind, queue, owner, payload, state, finished)
        values (${job}, 'parse', 'parse', ${owner}, '{}', ${state},
          case when ${state === 'failed'} then now() end)`;
    }
  }
  await sweep();
  const kept = ['gone running', 'reads running', 'writes failed', 'writes open', 'writes running'];
  expect(
    (await sql`select upload from upload_parts order by upload`).map(row => row.upload),
  ).toEqual(kept);
  // The model's list of parses shows those that have failed.
  const uids = (await sql`select uid from uploads`).map(row => row.uid).sort();
  expect(uids).toEqual([...kept, 'gone failed', 'reads failed'].sort());
});
