import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Database } from '../../shared/database/connect.ts';
import { newId } from '../../shared/ids.ts';
import { lockOf, shareRules } from '../../shared/jobs/fair-share.ts';
import { HAS_SLOT } from '../../shared/jobs/job-conditions.ts';
import { SUPPORTED_VERSIONS } from '../../shared/jobs/payload-versions.ts';
import { JobQueues } from '../../shared/jobs/queue.ts';
import { startJob } from '../../shared/jobs/start-job.ts';
import { createLog } from '../../shared/process/log.ts';
import { readConfig } from '../../shared/settings/config.ts';
import { dispatchWaiting, type QueueTurn } from '../../workers/engine/dispatch-waiting.ts';
import { withdrawSlots } from '../../workers/engine/heartbeat.ts';
import { withDatabase } from '../harness/databases/migrated-database.ts';

const given = withDatabase('fair-share');
let database: Database;
let queues: JobQueues;
let turns: QueueTurn;

beforeAll(() => {
  database = given.database();
  const log = createLog({ level: 'silent', name: 'test', secrets: [] });
  queues = new JobQueues({ databaseUrl: given.url, redisUrl: undefined, log });
});
afterAll(() => queues.close());
beforeEach(async () => {
  await database.sql`delete from jobs`;
  await database.sql`delete from workers`;
  turns = { queue: 'remote', last: '' };
});

const startWorker = (id: string, slots: number) =>
  database.sql`insert into workers (id, host, pid, slots, understands, seen)
    values (${id}, 'host', 1, ${JSON.stringify({ remote: slots })}::jsonb, ${JSON.stringify(SUPPORTED_VERSIONS)}::jsonb, 'infinity')`;

/** Jobs that wait, of which the first is `${name}00`. */
const wait = (owner: string, count: number, notBefore = 'null') =>
  database.sql.unsafe(`insert into jobs (id, kind, queue, owner, payload, not_before)
    select '${owner}' || lpad(n::text, 2, '0'), 'command', 'remote', '${owner}', '{}', ${notBefore}
    from generate_series(0, ${count - 1}) n`);

/** Ends jobs that have slots, the first ones of the user. */
const end = (owner: string, count: number) =>
  database.sql`update jobs set finished = now(), lease_token = null where id in (
    select id from jobs where owner = ${owner} and finished is null and dispatched is not null order by id limit ${count})`;

const dispatch = (share = '0.5') => {
  const log = createLog({ level: 'silent', name: 'test', secrets: [] });
  return dispatchWaiting(
    { database, queues, log, config: readConfig({ LIMIT_SHARE: share }) },
    turns,
  );
};

/** How many slots each user has. */
async function slots(): Promise<Record<string, number>> {
  const rows = await database.sql.unsafe<{ owner: string; n: number }[]>(
    `select owner, count(*)::int as n from jobs where ${HAS_SLOT} group by owner order by owner`,
  );
  return Object.fromEntries(rows.map(({ owner, n }) => [owner, n]));
}

const dispatched = async () => {
  const rows = await database.sql<{ id: string }[]>`
    select id from jobs where dispatched is not null and finished is null order by id`;
  return rows.map(row => row.id);
};

describe('slots', () => {
  test.each([
    [1, 1],
    [2, 1],
    [3, 2],
    [8, 7],
    [15, 14],
    [16, 14],
    [64, 56],
  ])('of %i a user who is alone is given %i: not the reserve', async (total, most) => {
    await startWorker('w', total);
    await wait('ann', 99);
    expect(await dispatch()).toBe(true);
    expect(await slots()).toEqual({ ann: most });
    await dispatch();
    expect(await slots()).toEqual({ ann: most });
  });

  test('are shared by two users, and none is left', async () => {
    await startWorker('w', 16);
    await wait('ann', 50);
    await wait('bob', 50);
    await dispatch();
    expect(await slots()).toEqual({ ann: 8, bob: 8 });
  });

  test('of the reserve are for who comes later, and then every one that becomes free, until both have half', async () => {
    await startWorker('w', 16);
    await wait('ann', 50);
    await dispatch();
    await wait('bob', 50);
    await dispatch();
    expect(await slots()).toEqual({ ann: 14, bob: 2 });
    for (let ended = 0; ended < 10; ended++) {
      await end('ann', 1);
      await dispatch();
    }
    expect(await slots()).toEqual({ ann: 8, bob: 8 });
  });

  test('beyond a share are given once the others wait no more', async () => {
    await startWorker('w', 16);
    await wait('ann', 50);
    await wait('bob', 3);
    expect(await dispatch()).toBe(true);
    expect(await slots()).toEqual({ ann: 11, bob: 3 });
  });

  test('of more users than there are go round', async () => {
    await startWorker('w', 1);
    for (const owner of ['cat', 'ann', 'bob']) await wait(owner, 5);
    const served: string[] = [];
    for (let round = 0; round < 6; round++) {
      await dispatch();
      const [owner = ''] = Object.keys(await slots());
      served.push(owner);
      await end(owner, 1);
    }
    expect(served).toEqual(['ann', 'bob', 'cat', 'ann', 'bob', 'cat']);
  });

  test('are given first to who has fewest', async () => {
    await startWorker('w', 6);
    await wait('ann', 9);
    await dispatch();
    expect(await slots()).toEqual({ ann: 5 });
    await wait('bob', 9);
    await wait('cat', 9);
    await end('ann', 2);
    await dispatch();
    expect(await slots()).toEqual({ ann: 3, bob: 2, cat: 1 });
  });

  test('are those of the workers alive', async () => {
    await startWorker('w1', 8);
    await startWorker('w2', 8);
    await wait('ann', 50);
    await dispatch();
    expect(await slots()).toEqual({ ann: 14 });
    await database.sql`update workers set seen = now() - interval '1 minute' where id = 'w2'`;
    await wait('bob', 50);
    await end('ann', 6);
    await dispatch();
    expect(await slots()).toEqual({ ann: 8 });
    await end('ann', 5);
    await dispatch();
    expect(await slots()).toEqual({ ann: 4, bob: 4 });
    await startWorker('w3', 8);
    await dispatch();
    expect(await slots()).toEqual({ ann: 8, bob: 8 });
  });

  test.each([
    {
      how: 'is drained',
      cease: () => database.sql`update workers set draining = true where id = 'w1'`,
    },
    { how: 'stops', cease: () => withdrawSlots({ id: 'w1', database }) },
  ])('of a worker that $how count neither free nor taken', async ({ cease }) => {
    await startWorker('w1', 8);
    await startWorker('w2', 8);
    await wait('ann', 50);
    await dispatch();
    await database.sql`update jobs set lease_token = id, worker = 'w1'
      where id in (select id from jobs where dispatched is not null order by id limit 8)`;
    await cease();
    await wait('bob', 50);
    await database.sql`delete from jobs where owner = 'ann' and dispatched is not null and lease_token is null`;
    await dispatch();
    expect((await slots()).bob).toBe(4);
  });

  test('a share of a hundredth is what it says', () => {
    expect([shareRules(100, 0.07).share, shareRules(25, 0.28).share]).toEqual([7, 7]);
    expect(shareRules(10, 0.25).share).toBe(3);
  });

  test('are given by LIMIT_SHARE', async () => {
    await startWorker('w', 16);
    await wait('ann', 50);
    await wait('bob', 50);
    await dispatch('0.2');
    expect(await slots()).toEqual({ ann: 4, bob: 4 });
    await end('bob', 50);
    await database.sql`delete from jobs where owner = 'bob'`;
    await dispatch('0.2');
    expect(await slots()).toEqual({ ann: 14 });
  });

  test('of one user are given to what a worker lost and is due, then to the oldest', async () => {
    await startWorker('w', 4);
    await wait('ann', 9);
    await database.sql`update jobs set not_before = now() + interval '1 hour' where id = 'ann00'`;
    await database.sql`update jobs set not_before = now() - interval '1 hour' where id = 'ann07'`;
    await dispatch();
    expect(await dispatched()).toEqual(['ann01', 'ann02', 'ann07']);
  });

  test('of one user are given to jobs of a host that is unreachable, and to others, however many wait', async () => {
    await startWorker('w', 1);
    await wait('ann', 9);
    await database.sql`update jobs set not_before = now() - interval '1 hour', unreachable_since = now()
      where id > 'ann04'`;
    const given = new Set<boolean>();
    for (let round = 0; round < 200 && given.size < 2; round++) {
      await dispatch();
      const [id = ''] = await dispatched();
      given.add(id > 'ann04');
      await database.sql`update jobs set dispatched = null where id = ${id}`;
    }
    expect(given.size).toBe(2);
  });

  test('are not given by two at once: who comes second counts again', async () => {
    await startWorker('w', 16);
    await wait('ann', 50);
    const rounds = Array.from({ length: 4 }, () => dispatch());
    await Promise.all(rounds);
    expect(await slots()).toEqual({ ann: 14 });
  });
});

describe('a new job', () => {
  const start = async (owner: string, share = 0.5) => {
    const row = await startJob(database.db, {
      id: newId(),
      kind: 'command',
      payload: { command: 'true' },
      owner,
      limit: 0,
      share,
    });
    return row.dispatched !== null;
  };
  const startSome = async (owner: string, count: number, share?: number) => {
    const found: boolean[] = [];
    for (let n = 0; n < count; n++) found.push(await start(owner, share));
    return found.filter(Boolean).length;
  };

  test('has a slot at once, as long as its user has less than the share that nobody can take from him', async () => {
    await startWorker('w', 8);
    expect(await startSome('ann', 6)).toBe(4);
    expect(await startSome('bob', 6)).toBe(4);
    expect(await startSome('cat', 1)).toBe(0);
    await dispatch();
    expect(await slots()).toEqual({ ann: 4, bob: 4 });
  });

  test('has none where no worker is alive', async () => {
    expect(await start('ann')).toBe(false);
  });

  test('has the share that LIMIT_SHARE allows', async () => {
    await startWorker('w', 8);
    expect(await startSome('ann', 6, 0.25)).toBe(2);
    expect(await startSome('bob', 6, 1)).toBe(4);
  });

  test('waits behind those of its user', async () => {
    await startWorker('w', 8);
    await wait('ann', 1);
    expect(await start('ann')).toBe(false);
    expect(await start('bob')).toBe(true);
  });

  test('waits while slots are being given', async () => {
    await startWorker('w', 8);
    await database.sql.begin(async tx => {
      await tx.unsafe(`select pg_advisory_xact_lock(${lockOf('remote')})`);
      expect(await start('ann')).toBe(false);
    });
    await dispatch();
    expect(await slots()).toEqual({ ann: 1 });
  });
});

test('where nothing waits, no lock is taken', async () => {
  await startWorker('w', 8);
  await database.sql.begin(async tx => {
    await tx.unsafe(`select pg_advisory_xact_lock(${lockOf('remote')})`);
    expect(await dispatch()).toBe(false);
  });
});
