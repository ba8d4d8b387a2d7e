import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { drizzle } from 'drizzle-orm/postgres-js';
import { migrate as migrateByDrizzle } from 'drizzle-orm/postgres-js/migrator';
import { describe, expect, test } from 'vitest';
import { openDatabase } from '../../shared/database/connect.ts';
import { migrateDatabase } from '../../shared/database/migrate.ts';
import { MIGRATIONS } from '../../shared/database/migrations/migration-files.ts';
import { waitForSchema } from '../../shared/database/wait-for-schema.ts';
import {
  isIndexValid,
  pidOf,
  readColumns,
  useMigrations,
} from '../harness/databases/migrations.ts';
import { startProgram } from '../harness/run-program.ts';
import { waitFor } from '../harness/wait-for.ts';

describe('migrations', () => {
  const { connect, write, migrate, untilSaid, untilItWaits, url, folder } = useMigrations();

  test('take as long as they take, whatever limits statements of others', async () => {
    const name = new URL(url()).pathname.slice(1);
    await connect().unsafe(`alter database ${name} set statement_timeout = '300ms'`);
    write([
      'select pg_sleep(1)',
      `do $$ begin
        if current_setting('statement_timeout') <> '0' then raise 'there is a limit'; end if;
      end $$`,
    ]);
    await migrate();
  });

  test('let others pass while they wait for a lock, say whose it is, and try again', async () => {
    const [holder, other] = [connect(), connect()];
    await holder`create table t (n integer)`;
    write(['select 1'], ['alter table t add column m integer']);
    await holder`begin`;
    await holder`select * from t`;
    const done = migrate();
    await untilItWaits(other);
    // It waits behind the migration, which gives up; then it passes although the holder goes on.
    await other`insert into t values (1)`;
    const pid = await pidOf(holder);
    const line = await untilSaid(/waits for a lock of process/);
    expect(line).toContain('Migration 0001_b, statement 1 of 1, waits for a lock');
    expect(line).toContain(`process ${pid} (`);
    expect(line).toContain('idle in transaction');
    await untilItWaits(other);
    await holder`commit`;
    await done;
    expect(await readColumns(other)).toEqual(['n', 'm']);
  });

  test('build an index concurrently while others write, with a second process that wants to migrate', {
    timeout: 60_000,
  }, async () => {
    const [holder, other] = [connect(), connect()];
    await holder`create table t (n integer)`;
    write(['create index concurrently t_n on t (n)']);
    // The index waits for the end of an older transaction.
    await holder`begin`;
    await holder`insert into t values (1)`;
    const pid = await pidOf(holder);
    const both = Promise.all([migrate(), migrate()]);
    await untilSaid(/^Another process migrates this database/);
    await other`insert into t values (2)`;
    // Longer than any statement of other programs may take.
    expect(await untilSaid(/has run for 1\d s/, 30_000)).toContain(
      `statement 1 of 1, has run for 10 s; waits for process ${pid} (`,
    );
    await holder`commit`;
    await both;
    expect(await isIndexValid(other)).toBe(true);
  });

  test('name the statement that fails, and go on with it when its cause is mended', async () => {
    const sql = connect();
    await sql`create table t (n integer)`;
    await sql`insert into t values (1), (1)`;
    write(['insert into t values (2)', 'create unique index concurrently t_n on t (n)']);
    for (let run = 1; run <= 2; run++) {
      await expect(migrate()).rejects.toThrow(
        /^Migration 0000_a, statement 2 of 2, failed: could not create unique index "t_n"\.$/,
      );
    }
    await sql`delete from t where ctid = (select min(ctid) from t)`;
    await migrate();
    expect(await isIndexValid(sql)).toBe(true);
    expect((await sql`select n from t order by n`).map(({ n }) => n)).toEqual([1, 2]);
  });

  test('take no index of the same name for theirs', async () => {
    const sql = connect();
    await sql`create table t (n integer, m integer)`;
    await sql`create index t_n on t (m)`;
    write(['create index concurrently t_n on t (n)']);
    for (let run = 1; run <= 2; run++) await expect(migrate()).rejects.toThrow('exists already');
  });

  test('refuse one that was changed after a part of it was applied', async () => {
    write(['create table t (n integer)', 'select 1 / 0']);
    await expect(migrate()).rejects.toThrow('statement 2 of 2, failed: division by zero.');
    write(['create table t (n bigint)', 'select 1']);
    await expect(migrate()).rejects.toThrow('Migration 0000_a was changed after');
  });

  test('stop when they are asked to', async () => {
    const [holder, other] = [connect(), connect()];
    await holder`create table t (n integer)`;
    write(['alter table t add column m integer']);
    await holder`begin`;
    await holder`select * from t`;
    const stop = new AbortController();
    const done = migrate(stop.signal);
    await untilItWaits(other);
    stop.abort(new Error('stopped'));
    await expect(done).rejects.toThrow('stopped');
    await holder`commit`;
    await migrate();
    expect(await readColumns(other)).toEqual(['n', 'm']);
  });

  test('end with 1 when the command is stopped: what comes after a success must not', async () => {
    const [holder, other] = [connect(), connect()];
    await holder`select pg_advisory_lock(7493221)`;
    const { child, ended } = startProgram({
      args: ['dist/cli/main.js', 'migrate'],
      cwd: folder(),
      settings: { DATABASE_URL: url() },
    });
    await waitFor(
      async () => {
        const [row] = await other`select from pg_stat_activity
          where application_name = 'windlass migrate' and query like '%pg_try_advisory_lock%'`;
        return row;
      },
      { what: 'the command to wait for another one' },
    );
    child.kill('SIGTERM');
    expect(await ended).toMatchObject({
      code: 1,
      stderr: 'windlass: Stopped before the database was up to date. Migrate again.\n',
    });
  });

  test("leave the queue's entries out of the WAL, those of a database of before too", async () => {
    const sql = connect();
    const listLogged = async () => {
      const rows = await sql<{ name: string }[]>`
        select relname as name from pg_class where relnamespace = 'bullmq'::regnamespace
          and relname in ('job', 'event', 'job_log', 'job_dependency') and relpersistence = 'p'`;
      return rows.map(row => row.name);
    };
    write(['select 1']);
    await migrate();
    expect(await listLogged()).toEqual([]);
    // As BullMQ makes them.
    for (const name of ['job', 'event', 'job_log', 'job_dependency'])
      await sql.unsafe(`alter table bullmq.${name} set logged`);
    await sql`select bullmq.add_job('remote', 'kept', 'job', '{}', '{}', 0, 0, 0, 0, null, null, null, null, null, false)`;
    expect(await listLogged()).toHaveLength(4);
    await migrate();
    expect(await listLogged()).toEqual([]);
    expect(await sql`select id from bullmq.job`).toHaveLength(1);
  });

  test('go on with the table of a database that drizzle has migrated', async () => {
    const first = join(folder(), 'first');
    cpSync(MIGRATIONS, first, { recursive: true });
    const path = join(first, 'meta/_journal.json');
    const journal = JSON.parse(readFileSync(path, 'utf8')) as { entries: { when: number }[] };
    const { entries } = journal;
    writeFileSync(path, JSON.stringify({ ...journal, entries: entries.slice(0, 4) }));
    const sql = connect();
    await migrateByDrizzle(drizzle(sql), { migrationsFolder: first });
    await migrateDatabase(url());
    const applied =
      await sql`select created_at as at from drizzle.__drizzle_migrations order by id`;
    expect(applied.map(({ at }) => Number(at))).toEqual(entries.map(({ when }) => when));
    expect(await sql`select * from drizzle.migration_progress`).toEqual([]);
  });

  test('of a newer release stay as they are, and are told of, where an older one comes after it', async () => {
    const sql = connect();
    const [role] = await sql`select from pg_roles where rolname = 'windlass_api'`;
    if (!role) await sql`create role windlass_api`;
    await migrateDatabase(url());
    await sql`create table later (n integer)`;
    await sql`grant select on later to windlass_api`;
    await sql`insert into drizzle.__drizzle_migrations (hash, created_at) values ('later', 9e15)`;
    const said: string[] = [];
    await migrateDatabase(url(), { say: line => said.push(line) });
    expect(said).toEqual([
      expect.stringMatching(/newer than this release by 1 migration\. .* stay as they are\.$/),
    ]);
    const [granted] =
      await sql`select has_table_privilege('windlass_api', 'later', 'select') as may`;
    expect(granted).toEqual({ may: true });

    const database = openDatabase(url(), { max: 1 });
    await waitForSchema(database, { url: url(), onNewer: line => said.push(line) });
    await database.close();
    expect(said[1]).toMatch(/newer than this release by 1 migration/);
  });
});
