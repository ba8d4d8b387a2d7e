import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readQueueStates } from '../../api/monitoring/queue-state.ts';
import { type Database, openDatabase } from '../../shared/database/connect.ts';
import { Notifications } from '../../shared/database/notifications.ts';
import { shareRules } from '../../shared/jobs/fair-share.ts';
import { SUPPORTED_VERSIONS } from '../../shared/jobs/payload-versions.ts';
import { JobQueues } from '../../shared/jobs/queue.ts';
import { createLog } from '../../shared/process/log.ts';
import { readConfig } from '../../shared/settings/config.ts';
import { dispatchWaiting, type QueueTurn } from '../../workers/engine/dispatch-waiting.ts';
import { type Picked, pickNext } from '../../workers/engine/pick-next.ts';
import { FinishedRunRemover } from '../../workers/runs/finished-run-remover.ts';
import {
  removeExpiredIdempotencyKeys,
  removeExpiredLogins,
} from '../../workers/upkeep/expired-rows.ts';
import { endFarPauses } from '../../workers/upkeep/far-pauses.ts';
import {
  cancelJobsOfEndedSessions,
  cancelJobsOfSessionsEndedBefore,
} from '../../workers/upkeep/sessions.ts';
import { removeOldDeliveries } from '../../workers/upkeep/webhook-retention.ts';
import { type DueDelivery, findDue } from '../../workers/webhooks/attempts.ts';
import { withDatabase } from '../harness/databases/migrated-database.ts';
import { waitFor } from '../harness/wait-for.ts';

const MANY = 20_000;
/** Rows that a step may read of a table where it has nothing to do. */
const FEW = 100;

const given = withDatabase('upkeep_cost');
/** It has one connection: each tells the server's statistics of its own work. */
let database: Database;
const { signal: stopping } = new AbortController();
const log = createLog({ level: 'silent', name: 'test' });

beforeAll(async () => {
  // The server comes to plan a statement for any parameters where its connection has sent it often.
  await given.database().sql`do $$ begin
    execute format('alter database %I set plan_cache_mode = force_generic_plan', current_database());
  end $$`;
  database = openDatabase(given.url, { max: 1 });
});
afterAll(() => database?.close());

/** Rows of the table that are read meanwhile, by scans of all of it or by an index. */
async function rowsRead(table: string, run: () => Promise<unknown>): Promise<number> {
  const read = async () => {
    await database.sql`select pg_stat_force_next_flush()`;
    const [row] = await database.sql<[{ rows: number }]>`
      select (seq_tup_read + (
        select sum(idx_tup_read) from pg_stat_user_indexes where relname = ${table}))::int as rows
      from pg_stat_user_tables where relname = ${table}`;
    return row.rows;
  };
  const before = await read();
  await run();
  return (await read()) - before;
}

test('deliveries of webhooks that are gone are removed, and those of the others not even read', async () => {
  const { db } = database;
  await db.execute(sql`insert into webhooks (id, owner, url, sealed)
    values ('b', 'ada', 'https://example.org', ''), ('d', 'ada', 'https://example.org', '')`);
  await db.execute(sql`insert into webhook_deliveries (job, webhook)
    select n::text, webhook from generate_series(1, ${MANY / 2}) n, unnest(array['b', 'd']) webhook
    union all select n::text, webhook from generate_series(1, 1500) n, unnest(array['a', 'c', 'e']) webhook`);
  await db.execute(sql`analyze webhooks, webhook_deliveries`);
  const remove = () => removeOldDeliveries({ database, stopping });
  await remove();
  const left = await db.execute(
    sql`select webhook, count(*)::int as n from webhook_deliveries group by 1 order by 1`,
  );
  expect(left.map(({ webhook, n }) => [webhook, n])).toEqual([
    ['b', MANY / 2],
    ['d', MANY / 2],
  ]);
  // Of what was removed an index has entries until then.
  await database.sql`vacuum webhook_deliveries`;
  expect(await rowsRead('webhook_deliveries', remove)).toBeLessThan(FEW);
});

test('deliveries that are due are found among those that were made', async () => {
  const { db } = database;
  await db.execute(
    sql`insert into webhooks (id, owner, url, sealed) values ('w', 'ada', 'https://example.org', '')`,
  );
  await db.execute(sql`insert into webhook_deliveries (job, webhook, state, due)
    select 'made-' || n, 'w', case when n > 1 then 'delivered' else 'pending' end, now() from generate_series(1, ${MANY}) n`);
  await db.execute(sql`analyze webhook_deliveries`);
  const found: DueDelivery[] = [];
  const find = async () => {
    found.push(...(await findDue(db, 'w', 10)));
  };
  expect(await rowsRead('webhook_deliveries', find)).toBeLessThan(FEW);
  expect(found.map(({ job }) => job)).toEqual(['made-1']);
});

test('jobs of ended sessions are cancelled, and those of the others not even read', async () => {
  const { db } = database;
  await db.execute(sql`insert into sessions (sid, owner, hostname, username, agent, opened, ended, sealed)
    values ('open', 'ada', 'h', 'ada', true, now(), null, 'x'),
      ('sealed', 'ada', 'h', 'ada', true, now(), now() - interval '1 hour', 'x'),
      ('erased', 'ada', 'h', 'ada', true, now(), now(), null),
      ('long-ago', 'ada', 'h', 'ada', true, now(), now() - interval '1 hour', null)`);
  await db.execute(sql`insert into jobs (id, kind, queue, owner, session, payload)
    select 'open-' || n, 'command', 'remote', 'ada', 'open', '{}'::jsonb from generate_series(1, ${MANY}) n
    union all select 'of-' || sid, 'command', 'remote', 'ada', sid, '{}' from unnest(array['sealed', 'erased', 'long-ago']) sid`);
  await db.execute(sql`insert into sessions (sid, owner, hostname, username, agent, opened, ended)
    select 'past-' || n, 'ada', 'h', 'ada', true, now(), now() - interval '1 day' from generate_series(1, ${MANY}) n`);
  await db.execute(sql`analyze sessions, jobs`);
  const notifications = new Notifications(database, log);
  const cancel = () => cancelJobsOfEndedSessions({ database, notifications });
  await cancel();
  const cancelled = async () => {
    const rows = await db.execute(
      sql`select id from jobs where cancel_requested is not null order by id`,
    );
    return rows.map(({ id }) => id);
  };
  expect(await cancelled()).toEqual(['of-erased', 'of-sealed']);
  expect(await rowsRead('jobs', cancel)).toBeLessThan(FEW);
  expect(await rowsRead('sessions', cancel)).toBeLessThan(FEW);
  await cancelJobsOfSessionsEndedBefore({ database, notifications });
  expect(await cancelled()).toEqual(['of-erased', 'of-long-ago', 'of-sealed']);
});

test('the sweep of finished runs reads only those that may be on their hosts', async () => {
  const { db } = database;
  await db.execute(sql`insert into sessions (sid, owner, hostname, username, agent, opened, sealed)
    values ('runs', 'ada', 'h', 'ada', true, now(), 'x')`);
  await db.execute(sql`insert into jobs (id, kind, queue, owner, session, payload, state, finished, run_at, run_removed)
    select 'run-' || n, 'command', 'remote', 'ada', 'runs', '{}'::jsonb, 'succeeded', now() - interval '1 hour',
      now() - interval '1 hour', n > 1 from generate_series(1, ${MANY}) n`);
  await db.execute(sql`analyze sessions, jobs`);
  const asked: string[] = [];
  const mayUse = async (sid: string) => {
    asked.push(sid);
    return false;
  };
  const use = () => Promise.reject(new Error('It may not be used.'));
  const remover = new FinishedRunRemover({ database, log, limitSeconds: 60, use, mayUse });
  expect(await rowsRead('jobs', () => remover.sweep())).toBeLessThan(FEW);
  expect(asked).toEqual(['runs']);
});

const startWorker = (slots: number, understands = SUPPORTED_VERSIONS) =>
  database.db.execute(sql`insert into workers (id, host, pid, slots, understands, seen)
    values ('w', 'h', 1, jsonb_build_object('remote', ${slots}::int), ${JSON.stringify(understands)}::jsonb, 'infinity')`);

test('for the next jobs of many users no more are read than could be picked', async () => {
  const { db } = database;
  await db.execute(sql`truncate jobs cascade`);
  await db.execute(sql`insert into jobs (id, kind, queue, owner, payload)
    select n, 'command', 'remote', 'user-' || n % 1000, '{}'::jsonb from generate_series(1, ${MANY}) n`);
  await db.execute(sql`analyze jobs`);
  const asked = { free: 32, rules: shareRules(32, 0.5), after: '', isTurnOfUnreachable: false };
  const picked: (string | null)[] = [];
  const pick = async () => {
    const [row] = await db.execute<Picked>(
      pickNext('remote', { ...asked, supported: SUPPORTED_VERSIONS }),
    );
    picked.push(row?.ids ?? null);
  };
  expect(await rowsRead('jobs', pick)).toBeLessThan(MANY / 4);
  expect(picked[0]?.split(',')).toHaveLength(32);
});

test('jobs that no worker supports are parked until one does, and hide nobody', async () => {
  const { db } = database;
  const count = 50_100;
  await db.execute(sql`truncate jobs cascade`);
  await startWorker(8);
  const newer = (SUPPORTED_VERSIONS.command ?? 0) + 1;
  await db.execute(sql`insert into jobs (id, kind, queue, owner, payload, payload_version)
    select 'a-' || n, 'command', 'remote', 'ada', '{}'::jsonb, ${newer}::int from generate_series(1, ${count}) n
    union all select 'b', 'command', 'remote', 'ada', '{}', 1 union all select 'c', 'command', 'remote', 'bob', '{}', 1`);
  await db.execute(sql`analyze jobs`);
  const queues = new JobQueues({ databaseUrl: given.url, redisUrl: undefined, log });
  const context = { database, queues, log, config: readConfig({ DATABASE_URL: given.url }) };
  const turns: QueueTurn = { queue: 'remote', last: '' };
  const dispatch = () => dispatchWaiting(context, turns);
  const isDispatched = async (id: string) =>
    (await db.execute(sql`select from jobs where id = ${id} and dispatched is not null`)).length >
    0;
  try {
    await dispatch();
    expect(await isDispatched('c')).toBe(true);
    await waitFor(async () => !(await dispatch()), { what: 'all to be parked' });
    expect(await isDispatched('b')).toBe(true);
    expect(await rowsRead('jobs', dispatch)).toBeLessThan(FEW);
    const [remote] = (await readQueueStates(db)).filter(({ queue }) => queue === 'remote');
    expect(remote).toMatchObject({ depth: 50_000, due: 2 });
    const [parked] = await db.execute(sql`select
      count(*) filter (where not_before > now() + interval '50 minutes')::int as n from jobs`);
    expect(parked).toEqual({ n: count });
    await db.execute(sql`delete from workers`);
    await startWorker(8, { ...SUPPORTED_VERSIONS, command: newer });
    const areDue = async () => {
      await dispatch();
      const [row] = await db.execute(
        sql`select count(*)::int as n from jobs where not_before > now()`,
      );
      return row?.n === 0;
    };
    await waitFor(areDue, { what: 'all to be unparked' });
    const [held] = await db.execute(
      sql`select count(*)::int as n from jobs where dispatched is not null`,
    );
    expect(held).toEqual({ n: 7 });
  } finally {
    await queues.close();
  }
});

test('what has expired is removed in batches, around rows that somebody has locked', async () => {
  const { db } = database;
  const count = 2_500;
  await db.execute(sql`insert into idempotency_keys (owner, route, key, body, job, created)
    select 'ada', 'r', n::text, '', n::text, now() - interval '2 days' from generate_series(1, ${count}) n`);
  await db.execute(sql`insert into logins (token, username, user_version, expires)
    select n::text, 'ada', 1, now() - interval '2 days' from generate_series(1, ${count}) n`);
  const left = async () => {
    const [row] = await db.execute<{ keys: number; logins: number }>(sql`
      select (select count(*)::int from idempotency_keys) as keys, (select count(*)::int from logins) as logins`);
    return row;
  };
  const removeBoth = async () => {
    await removeExpiredIdempotencyKeys({ database, stopping });
    await removeExpiredLogins({ database, stopping });
  };
  await given.database().sql.begin(async other => {
    await other`select from idempotency_keys where key = '7' for update`;
    await other`select from logins where token = '7' for update`;
    await removeBoth();
    expect(await left()).toEqual({ keys: 1, logins: 1 });
  });
  await removeBoth();
  expect(await left()).toEqual({ keys: 0, logins: 0 });
});

test('what waits for longer than any pause is due, and what waits for less not even read', async () => {
  const { sql: execute } = database;
  await execute`delete from jobs`;
  // As the clock of before had them: it was set back by two hours.
  await execute`
    insert into jobs (id, kind, queue, owner, payload, not_before, unreachable_since)
    select id, 'command', 'remote', 'ada', '{}', now() + wait, unreachable from (values
      ('released', interval '2 hours', null), ('unreachable', interval '2 hours 4 seconds', now()),
      ('parked', interval '1 hour', null), ('paused', interval '1 minute', now()),
      ('held', 'infinity', null)) each (id, wait, unreachable)`;
  await execute`
    insert into jobs (id, kind, queue, owner, payload, not_before)
    select 'x' || n, 'command', 'remote', 'bob', '{}', now() + interval '4 s' from generate_series(1, ${MANY}) n`;
  await execute`analyze jobs`;
  expect(await rowsRead('jobs', () => endFarPauses({ database }))).toBeLessThan(FEW);
  const due =
    await execute`select id from jobs where owner = 'ada' and not_before <= now() order by id`;
  expect(due.map(({ id }) => id)).toEqual(['released', 'unreachable']);
});
