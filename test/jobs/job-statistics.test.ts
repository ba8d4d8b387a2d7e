import { sql } from 'drizzle-orm';
import { beforeEach, expect, test } from 'vitest';
import { readStatistics } from '../../api/monitoring/job-statistics.ts';
import type { Database } from '../../shared/database/connect.ts';
import { jobs } from '../../shared/database/schema.ts';
import { newId } from '../../shared/ids.ts';
import { removeJobs } from '../../shared/jobs/remove-jobs.ts';
import { countJobs } from '../../workers/upkeep/job-statistics.ts';
import { withDatabase } from '../harness/databases/migrated-database.ts';

const given = withDatabase('job-statistics');
const MINUTE = 60_000;
let database: Database;
/** The beginning of the present minute. */
let minute: number;

beforeEach(async () => {
  database = given.database();
  await database.db.execute(
    sql`truncate jobs, uncounted_jobs, job_statistics, job_statistics_progress cascade`,
  );
  minute = Math.floor(Date.now() / MINUTE) * MINUTE;
});

const count = () => countJobs({ database, stopping: new AbortController().signal });
const read = (minutes: number, step: number) =>
  readStatistics(database.db, { since: new Date(minute - minutes * MINUTE), step });
const timeOf = (ms: number) => `${new Date(ms).toISOString().slice(0, 19)}Z`;

interface Times {
  /** When it ended, in ms since 1970; absent: it has not. */
  finished?: number;
  /** Seconds; absent: it was never started. */
  wait?: number;
  duration?: number;
}

async function store(
  kind: string,
  state: (typeof jobs.$inferInsert)['state'],
  { finished, wait, duration = 0 }: Times,
): Promise<void> {
  const end = finished ?? Date.now();
  const started = new Date(end - duration * 1_000);
  await database.db.insert(jobs).values({
    id: newId(),
    kind,
    queue: 'remote',
    owner: 'ada',
    payload: {},
    state,
    finished: finished === undefined ? null : new Date(finished),
    started: wait === undefined ? null : started,
    created: new Date(started.getTime() - (wait ?? 0) * 1_000),
    ...(state === 'running' && { leaseToken: newId() }),
  });
}

test('ends are counted by minute and kind, and each once, whoever counts and however often', async () => {
  const ended = minute - 10 * MINUTE;
  for (let n = 0; n < 20; n++)
    await store('command', 'succeeded', { finished: ended + n, wait: 0.04, duration: 1.5 });
  await store('command', 'failed', { finished: ended + 59_999, wait: 30, duration: 400 });
  await store('command', 'cancelled', { finished: ended + 5 });
  await store('video', 'failed', { finished: ended + MINUTE, wait: 2, duration: 100_000 });
  await Promise.all([count(), count(), count()]);
  await count();
  const seconds = (median: number, p95: number, longest: number) => ({ median, p95, longest });
  const expected = [
    {
      time: timeOf(ended),
      kind: 'command',
      succeeded: 20,
      failed: 1,
      cancelled: 1,
      wait: seconds(0.05, 0.05, 30),
      duration: seconds(2, 2, 400),
      waiting: null,
      running: null,
    },
    {
      time: timeOf(ended + MINUTE),
      kind: 'video',
      succeeded: 0,
      failed: 1,
      cancelled: 0,
      wait: seconds(2, 2, 2),
      duration: seconds(100_000, 100_000, 100_000),
      waiting: null,
      running: null,
    },
  ];
  expect(await read(20, 60)).toEqual(expected);
  // The record of a job may be removed: what was counted stays.
  await database.db.delete(jobs);
  await count();
  expect(await read(20, 60)).toEqual(expected);
  const [day] = await read(20, 86_400);
  expect(day).toMatchObject({ kind: 'command', succeeded: 20, failed: 1 });
});

test('what ended a moment ago is counted when its minute is over and settled', async () => {
  await store('command', 'succeeded', { finished: Date.now(), wait: 0, duration: 0 });
  await count();
  expect(await read(20, 60)).toEqual([]);
  await database.db.execute(sql`update jobs set finished = finished - interval '3 minutes'`);
  await database.db.execute(
    sql`update job_statistics_progress set ended_until = ended_until - interval '3 minutes'`,
  );
  await count();
  expect(await read(20, 60)).toMatchObject([{ kind: 'command', succeeded: 1 }]);
});

test('the jobs that wait and run are looked at once a minute', async () => {
  await store('command', 'queued', {});
  await store('command', 'running', { wait: 0 });
  await store('parse', 'queued', {});
  await count();
  const setSampled = (shift: string) =>
    database.db.execute(
      sql`update job_statistics_progress set sampled = now() + ${shift}::interval`,
    );
  // In whatever minute the next statement comes.
  await setSampled('1 minute');
  await store('parse', 'queued', {});
  await count();
  expect(await read(20, 86_400)).toMatchObject([
    { kind: 'command', succeeded: 0, wait: null, duration: null, waiting: 1, running: 1 },
    { kind: 'parse', waiting: 1, running: 0 },
  ]);
  await setSampled('-1 minute');
  await count();
  expect(await read(20, 86_400)).toMatchObject([{}, { kind: 'parse', waiting: 2 }]);
});

test('a statement that fails in the middle leaves nothing counted, and the next one counts it', async () => {
  await store('command', 'succeeded', { finished: minute - 5 * MINUTE, wait: 1, duration: 1 });
  await database.db.execute(sql`create function refuse() returns trigger language plpgsql as
    $$ begin raise exception 'the disk is full'; end $$`);
  await database.db.execute(sql`create trigger refuse before update of ended_until
    on job_statistics_progress for each row execute function refuse()`);
  await expect(count()).rejects.toThrow();
  expect(await read(20, 60)).toEqual([]);
  await database.db.execute(sql`drop trigger refuse on job_statistics_progress`);
  await count();
  expect(await read(20, 60)).toMatchObject([{ succeeded: 1 }]);
});

test('many ends are counted in several statements, each of whole minutes', async () => {
  const { db } = database;
  await db.execute(sql`create table counted (ends int)`);
  await db.execute(sql`create or replace function note_counted() returns trigger language plpgsql as
    $$ begin insert into counted select sum(failed) from added where failed > 0; return null; end $$`);
  await db.execute(sql`create trigger note_counted after insert on job_statistics
    referencing new table as added for each statement execute function note_counted()`);
  try {
    // Of the first minute more than one statement counts otherwise.
    for (const [n, ends] of [9, 2, 2, 0, 1, 4].entries())
      for (let i = 0; i < ends; i++)
        await store('command', 'failed', { finished: minute - (20 - n) * MINUTE + i });
    await countJobs({ database, stopping: new AbortController().signal }, 5);
    const statements = await db.execute<{ ends: number }>(
      sql`select ends from counted where ends is not null`,
    );
    expect(statements.map(({ ends }) => ends)).toEqual([9, 5, 4]);
    expect((await read(60, 60)).map(({ failed }) => failed)).toEqual([9, 2, 2, 1, 4]);
  } finally {
    await db.execute(sql`drop function note_counted cascade`);
    await db.execute(sql`drop table counted`);
  }
});

test('a job whose record is removed is counted, before or after that, once', async () => {
  const { db } = database;
  const removeAll = async () => {
    const ended = await db.select({ id: jobs.id }).from(jobs);
    const ids = ended.map(({ id }) => id);
    expect((await db.transaction(tx => removeJobs(tx, ids))).sort()).toEqual(ids.sort());
  };
  const ended = minute - 10 * MINUTE;
  await store('command', 'failed', { finished: ended, wait: 1, duration: 2 });
  await store('command', 'succeeded', { finished: ended, wait: 3, duration: 4 });
  await removeAll();
  await store('command', 'failed', { finished: ended });
  await count();
  // Counted already, and no more.
  await removeAll();
  await count();
  const [told, ...others] = await read(20, 60);
  expect(told).toMatchObject({ time: timeOf(ended), kind: 'command', succeeded: 1, failed: 2 });
  expect([told?.wait?.longest, told?.duration?.longest, others]).toEqual([3, 4, []]);
  // One that ends in a minute that is not settled is counted later.
  await store('video', 'failed', { finished: minute - MINUTE + 1 });
  await removeAll();
  await db.execute(sql`update uncounted_jobs set finished = finished - interval '3 minutes'`);
  await db.execute(
    sql`update job_statistics_progress set ended_until = ended_until - interval '4 minutes'`,
  );
  await count();
  expect(await read(20, 60)).toMatchObject([{ failed: 2 }, { kind: 'video', failed: 1 }]);
  expect(await db.execute(sql`select from uncounted_jobs`)).toHaveLength(0);
});

test('removals amid counting leave out no job and count none twice', async () => {
  const { db } = database;
  const kept = 20;
  for (let n = 0; n < kept; n++)
    await store('command', 'failed', { finished: minute - (30 - n) * MINUTE });
  const ended = await db.select({ id: jobs.id }).from(jobs);
  const removals = ended.map(({ id }) => db.transaction(tx => removeJobs(tx, [id])));
  const stopping = new AbortController().signal;
  await Promise.all([...removals, ...[1, 2, 3].map(() => countJobs({ database, stopping }, 3))]);
  await count();
  const items = await read(60, 86_400);
  expect(items.reduce((sum, { failed }) => sum + failed, 0)).toBe(kept);
});

test('a month of many jobs is counted, 30 days are kept', async () => {
  const db = database.db;
  await db.execute(sql`insert into jobs (id, kind, queue, owner, payload, state, created, started, finished)
    select 'many' || n, (array['command', 'video', 'parse'])[1 + n % 3], 'remote', 'ada', '{}', 'succeeded', at, at, at
    from (select n, now() - interval '31 days' + n * interval '26784 milliseconds' as at
      from generate_series(1, 99000) n) many`);
  await count();
  const items = await readStatistics(db, { since: new Date(0), step: 86_400 });
  const [{ kept }] = (await db.execute<{ kept: number }>(
    sql`select count(*)::int as kept from jobs where finished >= (select min(minute) from job_statistics)`,
  )) as unknown as [{ kept: number }];
  expect(items.reduce((sum, { succeeded }) => sum + succeeded, 0)).toBe(kept);
  // In two steps: no row may take the minute of one that moves after it.
  for (const days of [-60, 58])
    await db.execute(
      sql`update job_statistics set minute = minute + make_interval(days => ${days})`,
    );
  await db.execute(
    sql`update job_statistics_progress set ended_until = ended_until - interval '3 minutes'`,
  );
  await count();
  const [{ days }] = (await db.execute<{ days: number }>(
    sql`select extract(day from now() - min(minute))::int as days from job_statistics`,
  )) as unknown as [{ days: number }];
  expect(days).toBe(29);
});

test('after the clock was ahead, what ends is counted again', async () => {
  const { db } = database;
  await store('command', 'succeeded', { finished: minute - 10 * MINUTE, wait: 1, duration: 1 });
  await db.execute(sql`insert into job_statistics_progress (ended_until, sampled)
    values (date_trunc('minute', now()) + interval '1 year', now() + interval '1 year')`);
  await count();
  await count();
  const [row] = await db.execute(sql`
    select ended_until > now() - interval '5 minutes' and ended_until < now() and sampled <= now() as "isBack",
      (select sum(succeeded)::int from job_statistics) as succeeded
    from job_statistics_progress`);
  expect(row).toEqual({ isBack: true, succeeded: 1 });
});
