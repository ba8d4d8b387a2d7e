import postgres from 'postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ADVISORY_LOCKS } from '../../shared/database/advisory-locks.ts';
import type { Database } from '../../shared/database/connect.ts';
import { Notifications } from '../../shared/database/notifications.ts';
import { newId } from '../../shared/ids.ts';
import { JobQueues } from '../../shared/jobs/queue.ts';
import { createLog } from '../../shared/process/log.ts';
import { readConfig } from '../../shared/settings/config.ts';
import type { WorkerContext } from '../../workers/context.ts';
import { runDispatcher } from '../../workers/engine/dispatcher.ts';
import { WorkerMetrics } from '../../workers/engine/worker-metrics.ts';
import { withDatabase } from '../harness/databases/migrated-database.ts';
import { waitFor } from '../harness/wait-for.ts';

const given = withDatabase('dispatcher');
const stopping = new AbortController();
let database: Database;
let queues: JobQueues;
let dispatcher: Promise<void>;

beforeAll(() => {
  database = given.database();
  const log = createLog({ level: 'silent', name: 'test', secrets: [] });
  queues = new JobQueues({ databaseUrl: given.url, redisUrl: undefined, log });
  dispatcher = runDispatcher(
    {
      database,
      log,
      queues,
      stopping: stopping.signal,
      metrics: new WorkerMetrics(),
      config: readConfig({ DATABASE_URL: given.url }),
      notifications: new Notifications(database, log),
    } as WorkerContext,
    // What hangs is cancelled by the server after 10 s.
    { looks: 3 },
  );
});
afterAll(async () => {
  stopping.abort();
  await dispatcher;
  await queues.close();
});

const insertExpired = async () => {
  const id = newId();
  await database.sql`
    insert into jobs (id, kind, queue, owner, payload, state, dispatched, lease_token)
    values (${id}, 'command', 'remote', 'alice', '{}', 'running', now(), 'held')`;
  return id;
};

const untilTakenBack = (id: string) =>
  waitFor(
    async () =>
      (await database.sql`select 1 from jobs where id = ${id} and lease_token is null`).length > 0,
    { what: 'the lease to be reclaimed', timeoutMs: 30_000 },
  );

test('leases are reclaimed while dispatching hangs', async () => {
  await untilTakenBack(await insertExpired());
  // Without the programs' own limit on transactions that do nothing.
  const holder = postgres(given.url, { max: 1 });
  try {
    await holder.unsafe('begin; lock table workers');
    const findHanging = async () => {
      const [found] = await database.sql<{ pid: number; since: string }[]>`
        select pid, query_start::text as since from pg_stat_activity
        where wait_event_type = 'Lock' and query like '%from workers%'
        order by query_start limit 1`;
      return found;
    };
    const hanging = await waitFor(findHanging, { what: 'the dispatcher to count the slots' });
    await untilTakenBack(await insertExpired());
    expect(await findHanging()).toEqual(hanging);
  } finally {
    await holder.end();
  }
});

/** The process that serves the connection which has this advisory lock. */
const holderOf = async (lock: number) => {
  const [found] = await database.sql<{ pid: number }[]>`
    select pid from pg_locks where locktype = 'advisory' and objid = ${lock} and granted`;
  return found?.pid;
};

test('the dispatcher takes its lock again when it has lost its connection', async () => {
  const before = await waitFor(() => holderOf(ADVISORY_LOCKS.dispatcher), { what: 'the lock' });
  await database.sql`select pg_terminate_backend(${before})`;
  const isAnother = async () => {
    const now = await holderOf(ADVISORY_LOCKS.dispatcher);
    return now !== undefined && now !== before;
  };
  await waitFor(isAnother, { what: 'the lock on another connection' });
});

test('a dispatcher that stops gives up its lock and no other of its process', async () => {
  // That lasts several ticks.
  await untilTakenBack(await insertExpired());
  expect(await holderOf(ADVISORY_LOCKS.dispatcher)).toBeTypeOf('number');
  await database.direct.query('select pg_advisory_lock($1)', [ADVISORY_LOCKS.files]);
  stopping.abort();
  await dispatcher;
  expect(await holderOf(ADVISORY_LOCKS.dispatcher)).toBeUndefined();
  expect(await holderOf(ADVISORY_LOCKS.files)).toBeTypeOf('number');
});
