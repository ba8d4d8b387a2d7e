import { expect, test } from 'vitest';
import { newId } from '../../shared/ids.ts';
import { createLog } from '../../shared/process/log.ts';
import type { WorkerContext } from '../../workers/context.ts';
import { redispatchUnclaimed } from '../../workers/engine/redispatch-lost-entries.ts';
import { withDatabase } from '../harness/databases/migrated-database.ts';

const given = withDatabase('redispatch');

test('while the queue is unreachable nobody knows what it has lost, and the next look is not put off', async () => {
  const database = given.database();
  const id = newId();
  await database.sql`
    insert into jobs (id, kind, queue, owner, payload, state, dispatched)
    values (${id}, 'command', 'remote', 'alice', '{}', 'queued', now() - interval '1 minute')`;
  const readDispatched = async () =>
    (await database.sql`select dispatched::text from jobs where id = ${id}`)[0]?.dispatched;
  const before = await readDispatched();
  const away = new Error('Redis cannot be reached');
  const context = {
    database,
    log: createLog({ level: 'silent', name: 'test' }),
    queues: { missing: () => Promise.reject(away) },
  } as unknown as WorkerContext;
  await expect(redispatchUnclaimed(context, 'remote')).rejects.toBe(away);
  expect(await readDispatched()).toBe(before);
});
