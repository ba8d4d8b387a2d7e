import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Database, openDatabase } from '../../shared/database/connect.ts';
import { Notifications } from '../../shared/database/notifications.ts';
import { createLog } from '../../shared/process/log.ts';
import { endIdleSessions } from '../../workers/upkeep/sessions.ts';
import { withDatabase } from '../harness/databases/migrated-database.ts';
import { waitFor } from '../harness/wait-for.ts';

const given = withDatabase('idle_sessions');
let database: Database;
beforeAll(() => {
  database = openDatabase(given.url, { max: 1 });
});
afterAll(() => database?.close());

function endIdle(): Promise<void> {
  const log = createLog({ level: 'silent', name: 'test' });
  const notifications = new Notifications(database, log);
  return endIdleSessions({ database, notifications, config: { SESSION_IDLE_TIMEOUT: 60 } });
}

test('a session is idle once it was opened, and while its user is not asked for a code', async () => {
  await database.sql`
    insert into sessions (sid, owner, hostname, username, agent, accessed, opened, challenge_expires)
    select sid, 'ada', 'host', 'ada', true, now() - interval '1 hour', opened, challenge_expires
    from (values ('opening', null, now() + interval '1 minute'),
      ('opened', now(), null), ('challenged again', now(), now() + interval '1 minute'),
      ('challenged before', now(), now() - interval '1 minute')
    ) each (sid, opened, challenge_expires)`;
  await endIdle();
  const ended = await database.sql`select sid from sessions where ended is not null order by sid`;
  expect(ended.map(({ sid }) => sid)).toEqual(['challenged before', 'opened']);
});

test('a session in which a job is just being started is not idle', async () => {
  await database.sql`
    insert into sessions (sid, owner, hostname, username, agent, accessed, opened)
    values ('starting', 'ada', 'host', 'ada', true, now() - interval '1 hour', now())`;
  const { sql } = given.database();
  let settled = false;
  let ending: Promise<void> | undefined;
  await sql.begin(async tx => {
    await tx`select from sessions where sid = 'starting' for share`;
    ending = endIdle().finally(() => {
      settled = true;
    });
    const waits = () => sql`select from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`;
    await waitFor(async () => settled || (await waits()).length > 0, { what: 'the upkeep' });
    await tx`insert into jobs (id, kind, queue, owner, session, payload)
      values ('started', 'command', 'remote', 'ada', 'starting', '{}')`;
  });
  await ending;
  expect(await sql`select ended from sessions where sid = 'starting'`).toEqual([{ ended: null }]);
  // Where its job has ended it is.
  await sql`update jobs set state = 'done', finished = now() - interval '1 hour' where id = 'started'`;
  await endIdle();
  expect(await sql`select from sessions where sid = 'starting' and ended is null`).toHaveLength(0);
});
