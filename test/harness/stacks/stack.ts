import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { findFreePort, isFreePort } from '../../../servers/free-port.ts';
import {
  awaitExit,
  endWithThisProcess,
  findDescendants,
  listProcesses,
  type ProcessEntry,
  readEnvironment,
  signalProcess,
} from '../../../servers/processes.ts';
import { SETTINGS } from '../../../shared/settings/settings.ts';
import { copyCluster } from '../databases/cluster-template.ts';
import { makeTempDir } from '../files/temp-dir.ts';
import { startRedis, type TestRedis } from '../servers/redis.ts';
import { waitFor } from '../wait-for.ts';
import { type FleetServers, holdFleetServers, makeFleetSettings } from './fleet-servers.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const READY = /^Windlass is ready at (https?:\/\/\S+)/m;

/** Settings of a fleet of ten processes, as the package's own Procfile has them. */
export const WORKERS_APART = { PROCFILE: '' };
/** Only then these accounts may be set. */
const isRoot = process.geteuid?.() === 0 && process.platform === 'linux';
const WORKERS_TOGETHER = 'api: node dist/api/main.js\nworker: node dist/workers/main.js\n';

export interface StackOptions {
  /**
   * `fleet`: two APIs and two workers of every kind, on a PostgreSQL, a Redis and a MinIO that the stacks of a test
   * file share, and that `kill` does not know. With WORKERS_APART two workers of each kind. For the programs it needs
   * see missingFleet(). Default `embedded`.
   */
  form?: 'embedded' | 'fleet';
  /** Embedded: queue on a Redis of the stack's own instead of on the embedded Postgres. */
  redis?: boolean;
  /** Embedded: the number of workers. Default 2. */
  workers?: number;
  /** Settings; they win over the harness's own. */
  env?: Record<string, string | undefined>;
  /** The checkout whose programs it runs. Default: this one. */
  root?: string;
}

export interface StackProcess extends ProcessEntry {
  /** process.title where the program sets one; `supervisor`, `postgres`, `postgres-child`; else the program. */
  name: string;
}

export interface Stack {
  /** No slash at the end. */
  url: string;
  username: string;
  password: string;
  dataDir: string;
  redis?: TestRedis;
  /** The servers of a fleet. */
  servers?: FleetServers;
  /** What it was started with. */
  environment: NodeJS.ProcessEnv;
  /** The supervisor's. */
  pid: number;
  /** Everything the stack runs now, the supervisor first. Linux only. */
  pids(): StackProcess[];
  /** Request as the administrator, unless `init` has an Authorization of its own. */
  api(path: string, init?: RequestInit): Promise<Response>;
  /**
   * Sends SIGKILL, or another signal, to the processes of this name; their pids. `windlass-worker` is a fleet's workers of
   * every kind. Throws when there is none.
   */
  kill(name: string, signal?: NodeJS.Signals): number[];
  /** Everything that was printed so far. */
  log(): string;
  /** Starts it again on the same data and port, after `kill('supervisor')` or a `down()`. */
  up(): Promise<void>;
  /** Ends it as Ctrl-C does; throws when it does not end, or leaves a process behind. */
  down(): Promise<void>;
  /** `down`, and everything it stored is removed. */
  stop(): Promise<void>;
}

/**
 * Starts `windlass up` as an operator does, from dist, with a temporary data directory, and waits until
 * it says that it is ready. Rejects with all it printed when it ends or takes too long.
 */
export async function startStack(options: StackOptions = {}): Promise<Stack> {
  const directory = makeTempDir('stack');
  const dataDir = join(directory.path, 'data');
  const lease = options.form === 'fleet' ? await holdFleetServers() : undefined;
  const ownRedis = options.redis && !lease ? await startRedis() : undefined;
  const redis = lease?.servers.redis ?? ownRedis;
  const password = randomBytes(12).toString('base64url');
  const environment = {
    ...readOwnEnvironment(),
    HOST: '127.0.0.1',
    PORT: String(await findFreePorts(lease ? 2 : 1)),
    DATA_DIR: dataDir,
    ADMIN_PASSWORD: password,
    ...(ownRedis ? { REDIS_URL: ownRedis.url } : {}),
    ...(lease ? await makeFleetSettings(lease.servers, { migrated: true }) : {}),
    PROCFILE: join(directory.path, 'Procfile'),
    ...(options.workers ? { WORKER_PROCESSES: String(options.workers) } : {}),
    // What tests kill and look into are processes of their own user; test/access has the others.
    ...(isRoot && !lease ? { API_USER: 'root', WORKER_USER: 'root' } : {}),
    ...options.env,
    // Marks every process of this stack for pids(): an orphan is still found by it.
    WINDLASS_TEST_STACK: directory.path,
  };
  writeFileSync(join(directory.path, 'Procfile'), WORKERS_TOGETHER);
  const username = options.env?.ADMIN_USERNAME ?? 'admin';
  if (environment.DATA_DIR === dataDir && !('DATABASE_URL' in environment))
    await copyCluster(dataDir);
  const authorization = `Basic ${btoa(`${username}:${environment.ADMIN_PASSWORD}`)}`;
  let log = '';
  let child: ChildProcess;

  async function up(): Promise<string> {
    // Another folder than the checkout, whose .env is the developer's.
    child = spawn(process.execPath, [join(options.root ?? ROOT, 'dist/cli/main.js'), 'up'], {
      cwd: directory.path,
      env: environment,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    endWithThisProcess(child);
    let printed = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', chunk => {
        log += chunk;
        if (stream === child.stdout) printed += chunk;
      });
    }
    const ended = new AbortController();
    void awaitExit(child).then(({ code, signal }) => {
      ended.abort(new Error(`windlass up ended with ${signal ?? code}.`));
    });
    try {
      const ready = await waitFor(() => READY.exec(printed)?.[1], {
        what: 'the line "Windlass is ready at …"',
        timeoutMs: 60_000,
        signal: ended.signal,
      });
      // A PUBLIC_URL elsewhere leads to no proxy of the test.
      const isHere = new URL(ready).hostname === '127.0.0.1';
      return isHere ? ready.replace(/\/$/, '') : `http://127.0.0.1:${environment.PORT}`;
    } catch (error) {
      throw new Error(`The stack did not start. ${quoteEnd(log)}`, { cause: error });
    }
  }

  function pids(): StackProcess[] {
    return findProcesses({ supervisor: child.pid ?? 0, mark: directory.path });
  }

  async function down(): Promise<void> {
    const ended = awaitExit(child);
    child.kill('SIGINT');
    // Looking for all its processes costs more than most of them do to end.
    await Promise.race([ended, delay(30_000, undefined, { ref: false })]);
    try {
      await waitFor(() => pids().length === 0, {
        what: 'every process of the stack to end',
        timeoutMs: 10_000,
        intervalMs: 50,
      });
    } catch (cause) {
      const left = pids();
      for (const { pid } of left) signalProcess(pid, 'SIGKILL');
      const names = left.map(entry => `${entry.pid} ${entry.command}`).join('\n');
      throw new Error(`The stack left processes behind:\n${names}\n${quoteEnd(log)}`, { cause });
    }
  }

  async function remove(): Promise<void> {
    await ownRedis?.stop();
    await lease?.release();
    directory.remove();
  }

  try {
    const url = await up();
    return {
      url,
      username,
      password: environment.ADMIN_PASSWORD,
      dataDir,
      redis,
      servers: lease?.servers,
      environment,
      get pid() {
        return child.pid ?? 0;
      },
      pids,
      api(path, init = {}) {
        const headers = new Headers(init.headers);
        if (!headers.has('authorization')) headers.set('authorization', authorization);
        return fetch(`${url}${path}`, { ...init, headers });
      },
      kill(name, signal = 'SIGKILL') {
        const found = pids().filter(
          entry =>
            entry.name === name ||
            (name === 'windlass-worker' && entry.name.startsWith('windlass-worker-')),
        );
        if (found.length === 0) throw new Error(`The stack runs no ${name}.`);
        return found.filter(entry => signalProcess(entry.pid, signal)).map(entry => entry.pid);
      },
      log: () => log,
      async up() {
        await up();
      },
      down,
      async stop() {
        try {
          await down();
        } finally {
          await remove();
        }
      },
    };
  } catch (error) {
    for (const { pid } of pids()) signalProcess(pid, 'SIGKILL');
    await waitFor(() => pids().length === 0, { what: 'the failed stack to end' });
    await remove();
    throw error;
  }
}

/** The first of `count` free ports in a row: each API process of a fleet has one. */
export async function findFreePorts(count: number): Promise<number> {
  for (;;) {
    const port = await findFreePort();
    const others = Array.from({ length: count - 1 }, (_unused, n) => port + 1 + n);
    const free = await Promise.all(others.map(isFreePort));
    if (free.every(Boolean)) return port;
  }
}

/** The mark before each line keeps vitest from taking its stack traces for the test's own. */
function quoteEnd(log: string): string {
  const lines = log.trimEnd().split('\n').slice(-60);
  return `It printed:\n${lines.map(line => `| ${line}`).join('\n')}`;
}

/** What this process runs with, less every setting of Windlass: a developer's must not reach the stack. */
export function readOwnEnvironment(): NodeJS.ProcessEnv {
  const entries = Object.entries(process.env).filter(
    ([name]) => !Object.hasOwn(SETTINGS, name) && !name.startsWith('VITEST') && name !== 'NODE_ENV',
  );
  return Object.fromEntries(entries);
}

/**
 * The supervisor and its descendants, and everything that carries the stack's mark in its environment
 * or the stack's folder in its command line: Postgres and orphans are found by these.
 */
function findProcesses(stack: { supervisor: number; mark: string }): StackProcess[] {
  const all = listProcesses();
  const isMarked = (entry: ProcessEntry) =>
    entry.pid === stack.supervisor ||
    entry.command.includes(stack.mark) ||
    readEnvironment(entry.pid).WINDLASS_TEST_STACK === stack.mark;
  const roots = all.filter(isMarked);
  const rootPids = roots.map(entry => entry.pid);
  return [...roots, ...findDescendants(rootPids, all)]
    .map(entry => ({ ...entry, name: nameProcess(entry, stack.supervisor) }))
    .sort((a, b) => Number(b.name === 'supervisor') - Number(a.name === 'supervisor'));
}

function nameProcess(entry: ProcessEntry, supervisor: number): string {
  if (entry.pid === supervisor) return 'supervisor';
  // The server's own children say what they do; killing the server alone is what a crash looks like.
  if (entry.command.startsWith('postgres:')) return 'postgres-child';
  const [first = ''] = entry.command.split(' ');
  return first.replace(/^.*\//, '');
}
