import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Database, openDatabase } from '../../shared/database/connect.ts';
import { Notifications } from '../../shared/database/notifications.ts';
import { createLog } from '../../shared/process/log.ts';
import { endIdleSessions } from '../../workers/upkeep/sessions.ts';
import { withDatabase } from '../harness/databases/migrated-database.ts';

const given = withDatabase('idle_sessions');
let database: Database;
beforeAll(() => {
  database = openDatabase(given.url, { max: 1 });
});
afterAll(() => database?.close());

test('a session is idle once it was opened, and while its user is not asked for a code', async () => {
  await database.sql`
    insert into sessions (sid, owner, hostname, username, agent, accessed, opened, challenge_expires)
    select sid, 'ada', 'host', 'ada', true, now() - interval '1 hour', opened, challenge_expires
    from (values ('opening', null, now() + interval '1 minute'),
      ('opened', now(), null), ('challenged again', now(), now() + interval '1 minute'),
      ('challenged before', now(), now() - interval '1 minute')
    ) each (sid, opened, challenge_expires)`;
  const log = createLog({ level: 'silent', name: 'test' });
  const notifications = new Notifications(database, log);
  const config = { SESSION_IDLE_TIMEOUT: 60 };
  await endIdleSessions({ database, notifications, config });
  const ended = await database.sql`select sid from sessions where ended is not null order by sid`;
  expect(ended.map(({ sid }) => sid)).toEqual(['challenged before', 'opened']);
});
