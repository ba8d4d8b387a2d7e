import { spawn } from 'node:child_process';
import * as fs from 'node:fs';
import { join } from 'node:path';
import postgres from 'postgres';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { makeTempDir, type TempDir } from '../../test/harness/files/temp-dir.ts';
import {
  chooseAccount,
  killOwner,
  makeOwners,
  NOBODY,
  stopOwner,
} from '../../test/harness/test-owner.ts';

const isRoot = process.geteuid?.() === 0;
const WAIT = { timeout: 10_000, interval: 20 };

let scratch: TempDir;
let owners: ReturnType<typeof makeOwners>;

beforeEach(() => {
  scratch = makeTempDir('embedded');
  owners = makeOwners(scratch.path);
});

afterEach(async () => {
  owners.killAll();
  await vi.waitFor(() => expect(owners.listProcesses()).toEqual([]), {
    timeout: 15_000,
    interval: 100,
  });
  scratch.remove();
});

const accounts = isRoot ? [{ as: 'root' }, { as: 'nobody' }] : [{ as: 'this user' }];

describe.each(accounts)('run by $as', ({ as }) => {
  const start = () => owners.start({ as });

  test('a second start keeps the data, the port and the password', async () => {
    const first = await start();
    await query(first.url, sql => sql`create table kept as select 42 as answer`);
    expect(await stopOwner(first)).toBe(0);
    expect(owners.listProcesses()).toEqual([]);
    const second = await start();
    expect(second.url).toBe(first.url);
    expect(await query(second.url, sql => sql`select answer from kept`)).toEqual([{ answer: 42 }]);
  });

  test('a start removes the programs that earlier releases copied, and nothing of others', async () => {
    const owner = await start();
    const { uid, gid } = fs.statSync(owners.dataDir);
    const put = (folder: string, file: string) => {
      fs.mkdirSync(join(owners.dataDir, folder));
      fs.writeFileSync(join(owners.dataDir, folder, file), '');
      for (const path of [folder, join(folder, file)])
        fs.chownSync(join(owners.dataDir, path), uid, gid);
    };
    put('postgres-17.2.0', 'pg-symlinks.json');
    put('postgres-17-old', 'PG_VERSION');
    await stopOwner(owner);
    await start();
    const left = fs.readdirSync(owners.dataDir).filter(name => name.startsWith('postgres-17'));
    // Those of root are elsewhere.
    const kept = as === 'root' ? ['postgres-17-old', 'postgres-17.2.0'] : ['postgres-17-old'];
    expect(left.sort()).toEqual(kept);
  });

  test('a killed postmaster is back at the same URL', async () => {
    const owner = await start();
    process.kill(owner.pid, 'SIGKILL');
    await vi.waitFor(() => expect(owners.readPostmaster()).not.toBe(owner.pid), WAIT);
    await vi.waitFor(() => query(owner.url, sql => sql`select 1`), WAIT);
    expect(await stopOwner(owner)).toBe(0);
  });

  test('a killed wrapper, and the server, are back', async () => {
    const owner = await owners.start({ as });
    const wrapper = readParent(owner.pid);
    expect(owners.listProcesses()).toContainEqual({ pid: wrapper, name: 'sh' });
    process.kill(wrapper, 'SIGKILL');
    await vi.waitFor(() => expect(owners.readPostmaster()).not.toBe(owner.pid), WAIT);
    await vi.waitFor(() => query(owner.url, sql => sql`select 1`), WAIT);
    expect(await stopOwner(owner)).toBe(0);
    expect(owners.listProcesses()).toEqual([]);
  });

  test('a busy backend of a killed postmaster does not prevent the next start', async () => {
    const owner = await start();
    const sql = postgres(owner.url, { max: 1, onnotice() {} });
    const busy = sql`do $$ begin loop end loop; end $$`.execute().catch(() => 'cut');
    await vi.waitFor(async () => {
      const rows = await query(
        owner.url,
        other => other`
        select 1 from pg_stat_activity where state = 'active' and query like 'do %'`,
      );
      expect(rows).toHaveLength(1);
    }, WAIT);
    process.kill(owner.pid, 'SIGKILL');
    await vi.waitFor(() => expect(owners.readPostmaster()).not.toBe(owner.pid), WAIT);
    await vi.waitFor(() => query(owner.url, other => other`select 1`), WAIT);
    expect(await busy).toBe('cut');
    await sql.end({ timeout: 0 });
  });

  test('when its owner is killed Postgres ends within 15 s, and a start right then works', async () => {
    const owner = await start();
    await query(owner.url, sql => sql`create table kept as select 42 as answer`);
    await killOwner(owner);
    await vi.waitFor(() => expect(owners.listProcesses()).toEqual([]), {
      timeout: 15_000,
      interval: 50,
    });
    const second = await start();
    await killOwner(second);
    const third = await start();
    expect(await query(third.url, sql => sql`select answer from kept`)).toEqual([{ answer: 42 }]);
    expect(third.pid).not.toBe(second.pid);
  });

  test('the next start stops the orphans, also if the wrappers were killed', async () => {
    const owner = await start();
    for (const { pid, name } of owners.listProcesses())
      if (name === 'sh') process.kill(pid, 'SIGSTOP');
    await killOwner(owner);
    for (const { pid, name } of owners.listProcesses())
      if (name === 'sh') process.kill(pid, 'SIGKILL');
    expect(owners.readPostmaster()).toBe(owner.pid);
    const second = await start();
    expect(second.pid).not.toBe(owner.pid);
    await query(second.url, sql => sql`select 1`);
  });

  test('an owner killed while it creates the cluster does not prevent the next start', async () => {
    const first = owners.launch({ as });
    await vi.waitFor(
      () =>
        expect(fs.readdirSync(owners.dataDir).some(name => name.startsWith('postgres.init-'))).toBe(
          true,
        ),
      { timeout: 10_000, interval: 5 },
    );
    first.kill('SIGKILL');
    const second = await start();
    await query(second.url, sql => sql`select 1`);
    expect(fs.readdirSync(owners.dataDir).filter(name => /init-|\.new|\.tmp/.test(name))).toEqual(
      [],
    );
  });

  test('a second owner is refused in one line; the first one continues', async () => {
    const first = await start();
    const second = await owners.refuse({ as });
    expect(second.error).toBe(
      `Another Windlass (process ${first.child.pid}) is running on ${owners.dataDir}.`,
    );
    await query(first.url, sql => sql`select 1`);
    expect(owners.readPostmaster()).toBe(first.pid);
  });

  test('a start waits for one that is stopping', async () => {
    const first = await start();
    const ended = stopOwner(first);
    const second = await start();
    expect(await ended).toBe(0);
    await query(second.url, sql => sql`select 1`);
  });

  test('a lock file with the pid of another program is replaced, and that program continues', async () => {
    const first = await start();
    await stopOwner(first);
    const bystander = spawn('sleep', ['60'], {
      cwd: join(owners.dataDir, 'postgres'),
      ...chooseAccount(as),
    });
    onTestFinished(() => void bystander.kill('SIGKILL'));
    const lines = [
      bystander.pid,
      join(owners.dataDir, 'postgres'),
      1_700_000_000,
      5432,
      '',
      '127.0.0.1',
      '',
      'ready',
      '',
    ];
    fs.writeFileSync(join(owners.dataDir, 'postgres', 'postmaster.pid'), lines.join('\n'), {
      mode: 0o600,
    });
    if (as === 'root') {
      const { uid, gid } = fs.statSync(join(owners.dataDir, 'postgres'));
      fs.chownSync(join(owners.dataDir, 'postgres', 'postmaster.pid'), uid, gid);
    } else if (isRoot)
      fs.chownSync(join(owners.dataDir, 'postgres', 'postmaster.pid'), NOBODY, NOBODY);
    const second = await start();
    await query(second.url, sql => sql`select 1`);
    expect(bystander.exitCode ?? bystander.signalCode).toBeNull();
  });

  test('a lost password file is replaced', async () => {
    const first = await start();
    await stopOwner(first);
    fs.rmSync(join(owners.dataDir, 'postgres.password'));
    const second = await start();
    expect(second.url).not.toBe(first.url);
    await query(second.url, sql => sql`select 1`);
    expect(fs.statSync(join(owners.dataDir, 'postgres.password')).mode & 0o777).toBe(0o600);
  });

  test('a cluster of another major version is refused and not changed', async () => {
    const first = await start();
    await stopOwner(first);
    fs.writeFileSync(join(owners.dataDir, 'postgres', 'PG_VERSION'), '16\n');
    const second = await owners.refuse({ as });
    expect(second.error).toMatch(/was made by PostgreSQL 16, and this is 18\.$/);
    expect(second.hint).toMatch(/windlass backup FOLDER.*windlass restore FOLDER/);
  });

  test('logins need the password', async () => {
    const { url } = await start();
    const wrong = new URL(url);
    wrong.password = 'guess';
    await expect(query(wrong.href, sql => sql`select 1`)).rejects.toThrow(
      /password authentication failed/,
    );
  });
});

async function query<T>(url: string, ask: (sql: postgres.Sql) => Promise<T>): Promise<T> {
  const sql = postgres(url, { max: 1, connect_timeout: 5, onnotice() {} });
  try {
    return await ask(sql);
  } finally {
    await sql.end({ timeout: 1 });
  }
}

function readParent(pid: number): number {
  return Number(/^PPid:\s*(\d+)/m.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
}
