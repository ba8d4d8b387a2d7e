import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { OWNER_ROLE, prepareRoles } from '../../cli/embedded-postgres/roles.ts';
import { findDescendants, readEnvironment } from '../../servers/processes.ts';
import { openDatabase } from '../../shared/database/connect.ts';
import { migrateDatabase } from '../../shared/database/migrate.ts';
import { finderOf } from '../../shared/database/primary.ts';
import { waitForSchema } from '../../shared/database/wait-for-schema.ts';
import { newId } from '../../shared/ids.ts';
import { QUEUES } from '../../shared/jobs/catalog.ts';
import { JobQueues } from '../../shared/jobs/queue.ts';
import { createLog } from '../../shared/process/log.ts';
import { listSecrets } from '../../shared/secrets/redact.ts';
import { stackDatabaseUrl, stackRoles } from '../harness/databases/database.ts';
import { startTestPostgres, type TestPostgres } from '../harness/databases/postgres-server.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { startProgram } from '../harness/run-program.ts';
import { startOwnOrShared } from '../harness/stacks/shared-stacks.ts';
import { useStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const DENIED = '42501';
/** Connects by the driver itself: what the programs demand of the server is theirs. */
const connect = (url: string) =>
  postgres(finderOf(url).url, { max: 1, onnotice: () => {}, fetch_types: false });

/** What each statement was refused with; undefined: it was not. */
async function tryAll(sql: postgres.Sql, statements: string[]) {
  const outcomes: Record<string, string | undefined> = {};
  for (const statement of statements)
    outcomes[statement] = await sql.unsafe(statement).then(
      () => undefined,
      (error: { code: string }) => error.code,
    );
  return outcomes;
}
const allDenied = (statements: string[]) =>
  Object.fromEntries(statements.map(statement => [statement, DENIED]));

/** What a superuser could do with the machine, or make itself. */
const ESCAPES = [
  `copy (select 1) to program 'true'`,
  `create temp table loot (line text); copy loot from program 'cat /proc/self/environ'`,
  `create temp table more (line text); copy more from '/etc/passwd'`,
  `copy (select 1) to '/tmp/windlass-loot'`,
  `select pg_read_file('/etc/passwd')`,
  `select pg_ls_dir('/')`,
  `select lo_import('/etc/passwd')`,
  'create role more login superuser',
  'alter role current_user superuser',
  'alter role current_user createrole',
  `set role ${OWNER_ROLE}`,
  'set role windlass',
  'create extension file_fdw',
  `load '/tmp/loot.so'`,
  `create function loot() returns int language c as '/tmp/loot.so'`,
];
const REWRITES = [
  `update audit_entries set target = 'nothing'`,
  `update audit_pending set target = 'nothing'`,
  'truncate audit_entries',
  'truncate audit_pending',
  'alter table audit_entries add column more text',
  'drop table audit_entries',
  'alter table hosts disable trigger all',
  'set session_replication_role = replica',
];

describe('the roles of the embedded database', () => {
  const { stack, client } = useStack({
    start: (options = {}) => startOwnOrShared(options),
  });
  const opened: postgres.Sql[] = [];
  let api: postgres.Sql;
  let worker: postgres.Sql;
  let owner: postgres.Sql;

  beforeAll(async () => {
    const urls = await stackRoles(stack);
    [api, worker, owner] = [connect(urls.api), connect(urls.worker), connect(urls.owner)];
    opened.push(api, worker, owner);
    await client.post('/api/users', { username: 'victim', password: 'correct horse' });
  });
  afterAll(() => Promise.all(opened.map(sql => sql.end({ timeout: 2 }))));

  test('no role of what runs, nor the owner, reaches files, programs or more rights', async () => {
    for (const sql of [api, worker]) expect(await tryAll(sql, ESCAPES)).toEqual(allDenied(ESCAPES));
    const ofOwner = ESCAPES.filter(one => !one.startsWith(`set role ${OWNER_ROLE}`));
    expect(await tryAll(owner, ofOwner)).toEqual(allDenied(ofOwner));
    const rows = await owner`
      select from pg_roles where rolname like 'windlass\\_%'
        and (rolsuper or rolcreaterole or rolcreatedb or rolreplication or rolbypassrls)`;
    expect(rows).toHaveLength(0);
  });

  test('neither the API nor a worker rewrites the audit, and the API adds to it alone', async () => {
    for (const sql of [api, worker])
      expect(await tryAll(sql, REWRITES)).toEqual(allDenied(REWRITES));
    const removals = [
      'delete from audit_entries',
      'delete from audit_pending',
      `insert into audit_entries (seq, action, hash) values (0, 'login', '')`,
      `update audit_chain set last_hash = ''`,
      'delete from audit_chain',
    ];
    expect(await tryAll(api, removals)).toEqual(allDenied(removals));
  });

  test('no entry that the API may add stops the chain of the audit', async () => {
    const username = randomBytes(20_000).toString('base64');
    await api`insert into audit_pending (action, time) values ('login', 'infinity')`;
    await api`insert into audit_pending (action, time) values ('login', '200000-01-01')`;
    await api`insert into audit_pending (action, username) values ('login', ${username})`;
    await api`insert into audit_pending (action, target) values ('logout', ${'x'.repeat(50_000_000)})`;
    await waitFor(async () => (await owner`select from audit_pending`).length === 0, {
      what: 'the entries to be chained',
    });
    const [row] =
      await owner`select max(length(to_jsonb(e)::text)) as longest from audit_entries e`;
    expect(row?.longest).toBeLessThan(12_000);
  });

  test('the API reads no sealed credential back, and a hash of one name at a time', async () => {
    const reads = [
      'select sealed from sessions',
      'select * from sessions',
      'update sessions set ended = now() returning sealed',
      `select sid from sessions where sealed > '\\x02'`,
      'table users',
      'copy users to stdout',
      'select password_hash from users',
      'select answers from sessions',
      'select sealed_env from sessions',
      'table webhooks',
      'select sealed from webhooks',
      `select id from webhooks where sealed > '\\x02'`,
      'delete from webhooks returning sealed',
      `update sessions set owner = 'thief'`,
    ];
    expect(await tryAll(api, reads)).toEqual(allDenied(reads));
    const [row] = await api<{ hash: string }[]>`select password_hash_of('victim') as hash`;
    expect(row?.hash).toMatch(/^\$argon2id\$/);
    const ofWorker = ['select password_hash from users', 'table users'];
    expect(await tryAll(worker, ofWorker)).toEqual(allDenied(ofWorker));
  });

  test('a worker adds many entries to each queue at once', async () => {
    const log = createLog({ level: 'silent', name: 'test', secrets: [] });
    const { worker: databaseUrl } = await stackRoles(stack);
    const queues = new JobQueues({ databaseUrl, redisUrl: undefined, log });
    try {
      // Of jobs that are not there.
      const entries = Array.from({ length: 50 }, () => ({ id: newId(), epoch: 1 }));
      for (const queue of QUEUES) await queues.add(queue, entries);
    } finally {
      await queues.close();
    }
  });

  test('the programs connect as these roles', async () => {
    const admin = connect(stackDatabaseUrl(stack));
    opened.push(admin);
    const rows = await admin<{ role: string; program: string }[]>`
      select distinct usename as role, split_part(application_name, '-', 2) as program
      from pg_stat_activity
      where application_name like 'windlass-%' order by 1`;
    expect([...rows]).toEqual([
      { role: 'windlass_api', program: 'api' },
      { role: 'windlass_worker', program: 'worker' },
    ]);
  });

  test('no key and no password stands in the environment or the arguments of a process', async () => {
    const read = (name: string) => readFileSync(join(stack.dataDir, name), 'utf8').trim();
    const known = listSecrets({
      ...JSON.parse(read('secrets.json')),
      POSTGRES_PASSWORD: read('postgres.password'),
      ADMIN_PASSWORD: stack.password,
      ...(await stackRoles(stack)),
    }).filter(secret => secret !== '');
    // Keys, the passwords of the superuser and of three roles, the administrator's.
    expect(new Set(known).size).toBeGreaterThanOrEqual(7);
    const children = findDescendants([stack.pid]);
    expect(children.map(({ command }) => command)).toEqual(
      expect.arrayContaining(['windlass-api', 'windlass-worker']),
    );
    for (const { pid, command } of children) {
      const environment = readEnvironment(pid);
      const named = listSecrets(environment).filter(secret => secret !== '');
      const shown = [command, ...Object.values(environment)].join('\n');
      const secrets = [...named, ...known.filter(secret => shown.includes(secret))];
      expect({ command, secrets }).toEqual({ command, secrets: [] });
    }
  });
});

describe('a database with these roles', () => {
  let server: TestPostgres;
  const place = makeTempDir('roles');

  beforeAll(async () => {
    server = await startTestPostgres();
  });
  afterAll(async () => {
    await server?.stop();
    place.remove();
  });

  /** Waits as a program of this role does; what it says meanwhile. */
  function waitAs(url: string) {
    const said: string[] = [];
    const database = openDatabase(url, { max: 1 });
    const ended = waitForSchema(database, { url, onWait: line => said.push(line) }).finally(() =>
      database.close(),
    );
    return { said, ended };
  }

  test('is waited for until its migration has granted the rights', async () => {
    const { owner, api, worker } = await prepareRoles(await server.createDatabase('waited'));
    const sql = connect(owner);
    // What a migration commits first.
    await sql`create schema drizzle`;
    await sql.end({ timeout: 2 });
    const waiting = [waitAs(api), waitAs(worker)];
    for (const { said } of waiting)
      await waitFor(() => said.some(line => line.includes('has no rights to the schema yet')), {
        what: 'it to say that it waits',
      });
    await migrateDatabase(owner);
    await Promise.all(waiting.map(({ ended }) => ended));
  });

  test('that was restored is served at once, and tells who copied and restored it', async () => {
    const { owner: from } = await prepareRoles(await server.createMigrated('copied'));
    await migrateDatabase(from);
    const { owner, api, worker } = await prepareRoles(await server.createDatabase('restored'));
    const folder = join(place.path, 'monday');
    const windlass = (url: string, ...args: string[]) =>
      startProgram({
        args: ['dist/cli/main.js', ...args],
        cwd: place.path,
        settings: { DATABASE_URL: url, DATA_DIR: join(place.path, 'data') },
      }).ended;
    mkdirSync(join(place.path, 'data'), { mode: 0o711 });
    const user = connect(from);
    await user`insert into users (username, password_hash) values ('kept', 'x')`;
    await user.end({ timeout: 2 });
    const ofWorker = new URL(from);
    ofWorker.username = 'windlass_worker';
    ofWorker.password = new URL(worker).password;
    expect((await windlass(ofWorker.href, 'backup', folder)).stderr).toMatch(
      /windlass_worker lacks a right .* the DATABASE_URL of the owner of the database/,
    );
    expect(await windlass(from, 'backup', folder)).toMatchObject({ code: 0, stderr: '' });
    const waiting = waitAs(api);
    expect(await windlass(owner, 'restore', folder)).toMatchObject({ code: 0, stderr: '' });
    await waiting.ended;
    const asApi = connect(api);
    try {
      expect([...(await asApi`select username from users`)]).toEqual([{ username: 'kept' }]);
      const told = await asApi`select action, target from audit_pending order by id`;
      expect([...told]).toEqual([
        // That of the worker's role, which may not read all.
        { action: 'backup', target: folder },
        { action: 'backup', target: folder },
        { action: 'restore', target: expect.stringMatching(/^2\S+Z$/) },
      ]);
    } finally {
      await asApi.end({ timeout: 2 });
    }
  });

  test('is copied by a role that may only read it, which the audit cannot tell', async () => {
    const url = await server.createMigrated('read-only');
    const sql = connect(url);
    await sql`create role reader login password 'reader' in role pg_read_all_data`;
    await sql.end({ timeout: 2 });
    const reader = new URL(url);
    reader.username = reader.password = 'reader';
    const { code, stderr } = await startProgram({
      args: ['dist/cli/main.js', 'backup', join(place.path, 'read')],
      cwd: place.path,
      settings: { DATABASE_URL: reader.href, DATA_DIR: join(place.path, 'data') },
    }).ended;
    expect([code, stderr]).toEqual([
      0,
      'windlass: The audit has no entry of this command: permission denied for table audit_pending.\n',
    ]);
  });
});

describe('a database of 0.1.0, where all belongs to the superuser', () => {
  let server: TestPostgres;

  beforeAll(async () => {
    server = await startTestPostgres();
  });
  afterAll(() => server?.stop());

  test('is handed over to the owner, as often as one likes, and keeps its rows', async () => {
    const url = await server.createDatabase('before');
    await migrateDatabase(url);
    const admin = connect(url);
    try {
      await admin`insert into users (username, password_hash) values ('kept', 'x')`;
      await prepareRoles(url);
      const { owner, api } = await prepareRoles(url);
      const left = await admin`
        select relname from pg_class where relkind in ('r', 'S', 'i')
          and relnamespace::regnamespace::text in ('public', 'drizzle', 'bullmq')
          and relowner <> ${OWNER_ROLE}::regrole
        union all select proname from pg_proc
          where pronamespace::regnamespace::text in ('public', 'drizzle', 'bullmq')
            and proowner <> ${OWNER_ROLE}::regrole`;
      expect([...left]).toEqual([]);
      await migrateDatabase(owner);
      const asApi = connect(api);
      try {
        expect([...(await asApi`select username from users`)]).toEqual([{ username: 'kept' }]);
      } finally {
        await asApi.end({ timeout: 2 });
      }
    } finally {
      await admin.end({ timeout: 2 });
    }
  });
});
