import { expect, test } from 'vitest';
import { newId } from '../../shared/ids.ts';
import { accountOf, readFollowed } from '../../workers/batch/followed-jobs.ts';
import { withDatabase } from '../harness/databases/migrated-database.ts';

const given = withDatabase('followed');

test('of more accounts than a poll holds each comes, in turn', async () => {
  const database = given.database();
  for (const username of ['e', 'B', 'd', 'a', 'c']) {
    const [sid, id] = [newId(), newId()];
    await database.sql`insert into sessions (sid, owner, hostname, username, agent, sealed)
      values (${sid}, 'u', 'host', ${username}, true, 'sealed')`;
    await database.sql`insert into jobs (id, kind, queue, owner, payload, state, session, run_at, run_place)
      values (${id}, 'batch', 'remote', 'u', '{}', 'queued', ${sid}, now(), 'place')`;
  }
  const read = async (turn: string) => {
    const followed = { hostname: 'host', cursors: {}, turn, most: 3 };
    const rows = await readFollowed({ database, id: 'worker' }, followed);
    return rows.map(accountOf);
  };
  expect(await read('')).toEqual(['B u', 'a u', 'c u']);
  expect(await read('B u')).toEqual(['a u', 'c u', 'd u']);
  expect(await read('d u')).toEqual(['e u', 'B u', 'a u']);
  expect(await read('e u')).toEqual(['B u', 'a u', 'c u']);
});
