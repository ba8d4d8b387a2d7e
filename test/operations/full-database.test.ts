import { execFileSync, spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import postgres from 'postgres';
import { expect, test } from 'vitest';
import { toWindlassError } from '../../api/http/to-windlass-error.ts';
import { openDatabase } from '../../shared/database/connect.ts';
import { withDatabase } from '../harness/databases/migrated-database.ts';
import { startTestPostgres } from '../harness/databases/postgres-server.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { connectClient } from '../harness/hosts/remote.ts';
import { NEEDS_MOUNT } from '../harness/hosts/small-disk.ts';
import { startStack } from '../harness/stacks/stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const given = withDatabase('full');

test('a database without a free connection is told as such', async () => {
  const admin = given.database();
  await admin.sql.unsafe(`create role crowded login password 'secret' connection limit 0`);
  const url = given.url.replace(/\/\/[^@]*@/, '//crowded:secret@');
  const crowded = openDatabase(url, { max: 1 });
  try {
    const error = await crowded.sql`select 1`.catch((reason: unknown) => reason);
    expect(toWindlassError(error)).toMatchObject({
      code: 'unavailable',
      message: 'Service unavailable: the database has no connection left (max_connections).',
    });
  } finally {
    await crowded.close();
  }
});

test('a full disk of the database is told as such, and nothing is changed', async context => {
  const disk = makeTempDir('disk');
  const { sql, wasFull } = given.database();
  const [server] = await sql<{ data_directory: string }[]>`show data_directory`;
  const owner = statSync(server?.data_directory ?? '');
  try {
    const option = `size=8m,uid=${owner.uid},gid=${owner.gid},mode=0700`;
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', option, 'tmpfs', disk.path], { stdio: 'ignore' });
    } catch {
      return context.skip(NEEDS_MOUNT);
    }
    await sql.unsafe(`create tablespace small location '${disk.path}'`);
    const fill = sql.unsafe(
      `create table filler tablespace small as select repeat('x', 1000) from generate_series(1, 100000)`,
    );
    const error = await fill.catch((reason: unknown) => reason);
    expect(toWindlassError(error)).toMatchObject({
      code: 'insufficient_storage',
      message: 'Insufficient storage: The disk of the database is full. Nothing was changed.',
      hint: 'Ask an administrator to make room on it, then try again.',
    });
    await waitFor(wasFull, { what: 'the database to be remembered as full' });
    await sql.unsafe('drop tablespace small');
  } finally {
    // Fails where nothing was mounted.
    spawnSync('umount', [disk.path]);
    disk.remove();
  }
});

test('connections that began while the database took no writes are replaced once it does', async () => {
  const { sql } = given.database();
  const [{ name } = { name: '' }] = await sql<
    { name: string }[]
  >`select current_database() as name`;
  const alter = (change: string) => sql.unsafe(`alter database "${name}" ${change}`);
  await alter('set default_transaction_read_only = on');
  const database = openDatabase(given.url, { max: 4, usual: 2 });
  const write = () => database.sql.unsafe('create table written ()');
  try {
    await expect(write()).rejects.toMatchObject({ code: '25006' });
    await expect(database.check()).rejects.toMatchObject({ code: '25006' });
    await alter('reset default_transaction_read_only');
    await expect(write()).rejects.toMatchObject({ code: '25006' });
    await database.check();
    await database.assertReady();
    await write();
  } finally {
    await alter('reset default_transaction_read_only');
    await database.close();
  }
});

test('a database that takes no writes is told by /readyz, and once in the log; who is known goes on', async () => {
  const server = await startTestPostgres();
  const stack = await startStack({
    env: { DATABASE_URL: await server.createMigrated('read_only'), LOG_LEVEL: 'debug' },
  });
  const admin = postgres(server.url('postgres'), { max: 1 });
  const setReadOnly = async (value: 'on' | 'off') => {
    await admin.unsafe(`alter system set default_transaction_read_only = ${value}`);
    await admin`select pg_reload_conf()`;
  };
  const readiness = async () => {
    const answer = await fetch(`${stack.url}/readyz`);
    return { status: answer.status, ...((await answer.json()) as object) };
  };
  try {
    const client = connectClient(stack);
    const asked = { name: 'kept', scope: 'read' };
    const { token } = await client.post<{ token: string }>('/api/users/-/tokens', asked);
    const before = stack.log().length;
    const told = () => {
      const lines = stack.log().slice(before).split('\n');
      return lines
        .filter(line => line.startsWith('{') && line.endsWith('}'))
        .map(line => JSON.parse(line) as { name: string; level: number; msg: string });
    };
    const count = (text: string) => told().filter(({ msg }) => msg.startsWith(text)).length;
    await setReadOnly('on');
    await waitFor(async () => (await readiness()).status === 503, { what: '/readyz to see it' });
    expect(await readiness()).toMatchObject({
      ready: false,
      checks: {
        database: 'Service unavailable: the database accepts no writes.',
        objects: null,
        work: null,
      },
      workers: null,
    });
    await waitFor(() => count('the database is unreachable: the database accepts no writes') >= 6, {
      what: 'each process to tell of it, and to see it again',
      timeoutMs: 60_000,
    });
    expect(count('a heartbeat could not be written')).toBeGreaterThan(0);
    const warnings = told().filter(({ level }) => level >= 40);
    expect(warnings.map(({ name, msg }) => `${name}: ${msg}`).sort()).toEqual([
      'api: the database is unreachable: the database accepts no writes',
      'windlass-worker: the database is unreachable: the database accepts no writes',
      'windlass-worker: the database is unreachable: the database accepts no writes',
    ]);
    // A password that was right before, and a token.
    expect(await client.get('/api/users/-')).toMatchObject({ username: 'admin' });
    const headers = { Authorization: `Bearer ${token}` };
    expect((await fetch(`${stack.url}/api/users/-`, { headers })).status).toBe(200);
    await setReadOnly('off');
    await waitFor(async () => (await readiness()).status === 200, { what: 'to be ready again' });
  } finally {
    await admin.end({ timeout: 2 });
    await stack.stop();
    await server.stop();
  }
});
