import { eq, type SQL, sql } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readPage } from '../../api/http/pagination.ts';
import { findJob } from '../../api/jobs/queries/find-job.ts';
import { type Database, openDatabase } from '../../shared/database/connect.ts';
import { jobs, sessions } from '../../shared/database/schema.ts';
import { newId } from '../../shared/ids.ts';
import { summaryColumns, toJobRecord } from '../../shared/jobs/job-record.ts';
import { createLog } from '../../shared/process/log.ts';
import { FinishedRunRemover } from '../../workers/runs/finished-run-remover.ts';
import { removeOldJobs } from '../../workers/upkeep/job-retention.ts';
import { removeOldSessions } from '../../workers/upkeep/session-retention.ts';
import { isFull } from '../faults/settings.ts';
import { claimJob } from '../harness/claim-job.ts';
import { startTestPostgres, type TestPostgres } from '../harness/databases/postgres-server.ts';

/** Scaled down from 100,000. */
const JOBS_A_DAY = isFull ? 10_000 : 120;
const YEAR = 365;
const MONTH = 30;

let server: TestPostgres;
let database: Database;

beforeAll(async () => {
  server = await startTestPostgres();
  const url = await server.createMigrated('year');
  // One connection: its own counters tell which pages it read.
  database = openDatabase(url, { max: 1 });
});
afterAll(async () => {
  await database?.close();
  await server?.stop();
});

const run = (statement: SQL) => database.db.execute(statement);

/** An id in the order of time, as those of jobs are. */
const idOf = (n: SQL | number) => sql`'0' || lpad((${n})::text, 25, '0')`;

/** Adds a day's jobs: accepted, claimed and ended `daysAgo` days ago; each with some output, twenty in a session. */
async function addDay(day: number, daysAgo: number): Promise<void> {
  const first = day * JOBS_A_DAY;
  const n = sql`generate_series(${first}::int, ${first + JOBS_A_DAY - 1}::int) n`;
  const mine = sql`id between ${idOf(sql`${first}::int`)} and ${idOf(sql`${first + JOBS_A_DAY - 1}::int`)}`;
  const time = sql`now() - make_interval(days => ${daysAgo})`;
  await run(sql`insert into jobs (id, kind, queue, owner, session, payload, created)
    select ${idOf(sql`n`)}, 'command', 'remote', 'u', 's' || n / 20, '{"command": "make all"}', ${time} from ${n}`);
  await run(sql`update jobs set lease_token = 't' || id, state = 'running', started = ${time},
    run_at = ${time}, worker = 'w', epoch = 1, version = version + 1 where ${mine}`);
  await run(sql`insert into job_chunks (job, seq, stream, start, bytes)
    select ${idOf(sql`n`)}, 1, 1, 0, convert_to(repeat('output ', 40), 'utf8') from ${n}`);
  await run(sql`update jobs set lease_token = null, state = 'succeeded', finished = ${time},
    run_removed = true, stdout_bytes = 280, version = version + 1, result = '{"returncode": 0}' where ${mine}`);
  await run(sql`insert into sessions (sid, owner, hostname, username, agent, opened, ended)
    select distinct 's' || n / 20, 'u', 'h', 'u', true, ${time}, ${time} from ${n} on conflict do nothing`);
}

/** What upkeep does in a day, and autovacuum every few days. */
async function passDay(day: number, retentionDays: number): Promise<void> {
  const context = {
    database,
    config: { JOB_RETENTION_DAYS: retentionDays },
    metrics: { jobsRemoved: () => {} },
    stopping: new AbortController().signal,
  };
  await removeOldJobs(context);
  await removeOldSessions(context);
  if (day % 3 === 0) await run(sql`vacuum (analyze) jobs, job_chunks, sessions`);
}

/** Pages of all tables and their indexes that this reads. */
async function countPages(read: () => Promise<unknown>): Promise<number> {
  const total = async () => {
    await run(sql`select pg_stat_force_next_flush()`);
    const [row] = await database.db.execute<{ pages: number }>(sql`
      select sum(heap_blks_read + heap_blks_hit + coalesce(idx_blks_read + idx_blks_hit, 0))::float8 as pages
      from pg_statio_user_tables`);
    return row?.pages ?? 0;
  };
  await read();
  const before = await total();
  await read();
  return (await total()) - before;
}

async function measure(day: number) {
  const { db } = database;
  const last = await db.execute<{ id: string }>(sql`select max(id) as id from jobs`);
  const id = last[0]?.id ?? '';
  const due = Array.from({ length: 2 }, () => newId());
  for (const each of due)
    await db.insert(jobs).values({
      id: each,
      kind: 'command',
      queue: 'remote',
      owner: 'u',
      payload: {},
      epoch: 1,
    });
  const where = eq(jobs.owner, 'u');
  const order = { by: jobs.id, key: 'id', where, latestFirst: true } as const;
  const [sizes] = await db.execute<Record<string, number>>(sql`
    select pg_total_relation_size('jobs')::float8 as jobs, pg_total_relation_size('job_chunks')::float8 as chunks,
      pg_total_relation_size('sessions')::float8 as sessions`);
  const found = {
    rows: await db.$count(jobs),
    ...sizes,
    claim: await countPages(async () => {
      const row = await claimJob(db, { id: due.pop() ?? '', epoch: 1 }, { worker: 'w' });
      expect(row?.state).toBe('running');
    }),
    poll: await countPages(() => findJob(db, id)),
    list: await countPages(() =>
      readPage(db.select(summaryColumns).from(jobs), { limit: 100 }, order, toJobRecord),
    ),
  };
  console.log(`after ${day} days of ${JOBS_A_DAY} jobs: ${JSON.stringify(found)}`);
  return found as typeof found & Record<'jobs' | 'chunks' | 'sessions', number>;
}

/** Ten old jobs and ten old sessions among many, none of which the statistics know. */
async function fill(many: number): Promise<void> {
  const n = sql`generate_series(1, ${many}) n`;
  const time = (day: SQL) =>
    sql`now() - make_interval(days => case when ${day} then 31 else 1 end)`;
  for (const table of ['jobs', 'job_chunks', 'sessions']) {
    await run(sql`truncate ${sql.raw(table)} cascade`);
    await run(sql`alter table ${sql.raw(table)} set (autovacuum_enabled = off)`);
  }
  await run(sql`insert into jobs (id, kind, queue, owner, session, payload, state, finished)
    select ${idOf(sql`n`)}, 'command', 'remote', 'u', 's' || n, '{}', 'succeeded', ${time(sql`n <= 10`)} from ${n}`);
  // All but one were removed from their hosts.
  await run(sql`update jobs set run_at = created, run_removed = id <> ${idOf(many)}`);
  await run(sql`insert into job_chunks (job, seq, stream, start, bytes)
    select ${idOf(sql`n`)}, 1, 1, 0, 'x' from ${n}`);
  await run(sql`insert into sessions (sid, owner, hostname, username, agent, opened, ended)
    select 's' || n, 'u', 'h', 'u', true, now(), case when n % 2 = 0 then ${time(sql`n <= 20`)} end from ${n}`);
}

/** What removes ten old jobs and ten sessions among many reads some pages for each of them, and no table. */
async function expectFewPages(): Promise<void> {
  const many = 60_000;
  await fill(many);
  const removed: number[] = [];
  const remove = async (days: number) => {
    const context = {
      database,
      config: { JOB_RETENTION_DAYS: days },
      stopping: new AbortController().signal,
      metrics: { jobsRemoved: (count: number) => void removed.push(count) },
    };
    await removeOldJobs(context);
    await removeOldSessions(context);
  };
  // Nothing is due at first: what the server itself looks up for the first time is not ours.
  const days = [40, MONTH].values();
  const pages = await countPages(() => remove(days.next().value ?? 0));
  console.log(`pages read to remove ten of ${many} jobs, and their sessions: ${pages}`);
  expect(removed).toEqual([0, 10]);
  // Of ten ended ones five have a younger job.
  expect(await database.db.$count(sessions)).toBe(many - 5);
  const [size] = await database.db.execute<{ pages: number }>(
    sql`select (pg_relation_size('jobs') / 8192)::int as pages`,
  );
  expect(size?.pages).toBeGreaterThan(1_000);
  expect(pages).toBeLessThan(600);
  const used: string[] = [];
  const remover = new FinishedRunRemover({
    database,
    limitSeconds: 0,
    log: createLog({ level: 'silent', name: 'test' }),
    mayUse: async sid => {
      used.push(sid);
      return false;
    },
    use: () => Promise.reject(new Error('It may not be used.')),
  });
  await run(sql`update sessions set sealed = 'x' where sid = ${`s${many}`}`);
  const swept = await countPages(async () => remover.sweep());
  console.log(`pages read to find one of ${many} runs: ${swept}`);
  expect(used).toEqual([`s${many}`]);
  expect(swept).toBeLessThan(100);
}

test('a little is removed from many without statistics', expectFewPages);

test('after a year the tables are as large, and a claim, a poll and a list cost as much, as after a month', {
  timeout: isFull ? 1_800_000 : 120_000,
}, async () => {
  for (const table of ['jobs', 'job_chunks', 'sessions'])
    await run(sql`truncate ${sql.raw(table)} cascade`);
  const live = async (from: number, to: number) => {
    for (let day = from; day < to; day++) {
      // It is day `day`, and the jobs of today ended so long before now.
      const daysAgo = YEAR - day;
      await addDay(day, daysAgo);
      await passDay(day, MONTH + daysAgo);
    }
  };
  await live(0, MONTH + 5);
  const month = await measure(MONTH + 5);
  await live(MONTH + 5, YEAR);
  const year = await measure(YEAR);
  expect(year.rows).toBe(month.rows + 2);
  for (const what of ['jobs', 'chunks', 'sessions'] as const)
    expect([what, year[what] / month[what]]).toEqual([what, expect.closeTo(1, 0)]);
  for (const what of ['claim', 'poll', 'list'] as const)
    expect([what, year[what]]).toEqual([
      what,
      expect.toSatisfy(pages => pages <= 1.5 * month[what] + 2),
    ]);
});

test('a little is removed from many with the statistics of another time', expectFewPages);

test('the end of a session is looked for among its own jobs, although most jobs were once its', async () => {
  await run(sql`truncate jobs cascade`);
  const add = (from: number, to: number, session: SQL) =>
    run(sql`insert into jobs (id, kind, queue, owner, session, payload, state, finished)
      select ${idOf(sql`n`)}, 'command', 'remote', 'u', ${session}, '{}', 'succeeded', now() - interval '1 day' + make_interval(secs => n)
      from generate_series(${from}::int, ${to}::int) n`);
  await add(1, 10_000, sql`'mine'`);
  await run(sql`vacuum (analyze) jobs`);
  await add(10_001, 40_000, sql`'s' || n`);
  const last = sql`select max(finished) from jobs where session = 'mine'`;
  expect(await countPages(() => run(last))).toBeLessThan(50);
});
