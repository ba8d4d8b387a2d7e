/**
 * For tests: the embedded Postgres under a process of its own that can be killed, from dist, which
 * the harness builds first.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const NOBODY = 65_534;
export const built: string = fileURLToPath(new URL('../../dist/cli', import.meta.url));

const PROGRAM = `
const [base, given, systemDir] = process.argv.slice(2);
const { chooseDataDir } = await import(base + '/data-dir/choose-data-dir.js');
const { startPostgres } = await import(base + '/embedded-postgres/postgres.js');
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

export interface Owner {
  child: ChildProcess;
  url: string;
  /** The postmaster's. */
  pid: number;
}

export interface OwnerOptions {
  /** `nobody`, where the tests run as root; else the user of the tests. */
  as?: string;
  /** The compiled folder to run from. */
  from?: string;
  systemDir?: string;
  dataDir?: string;
}

/** Starts owners whose data lie under one folder, and knows the processes that work there. */
export function makeOwners(scratch: string) {
  const started = new Set<ChildProcess>();
  const dataDir = join(scratch, 'data');
  const program = join(scratch, 'owner.mjs');
  fs.chmodSync(scratch, 0o777);
  fs.writeFileSync(program, PROGRAM, { mode: 0o644 });

  function launch({
    as,
    from = built,
    systemDir,
    dataDir: given = dataDir,
  }: OwnerOptions): ChildProcess {
    const args = [program, from, given, ...(systemDir ? [systemDir] : [])];
    const child = spawn(process.execPath, args, {
      stdio: ['ignore', 'pipe', 'inherit'],
      ...chooseAccount(as),
    });
    started.add(child);
    return child;
  }

  return {
    dataDir,
    launch,
    async start(options: OwnerOptions): Promise<Owner> {
      const child = launch(options);
      const answer = await readAnswer(child);
      if (!answer.url || !answer.pid) throw new Error(`${answer.error} ${answer.hint}`);
      return { child, url: answer.url, pid: answer.pid };
    },
    /** A start that must fail: what it says. */
    async refuse(options: OwnerOptions): Promise<{ error: string; hint: string }> {
      const child = launch(options);
      const [{ error, hint }] = await Promise.all([readAnswer(child), once(child, 'exit')]);
      if (!error || !hint) throw new Error('It started.');
      return { error, hint };
    },
    readPostmaster(): number {
      const text = fs.readFileSync(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8');
      return Number(text.split('\n')[0]);
    },
    /** Postgres, initdb and wrappers. */
    listProcesses: () => listProcesses(scratch),
    killAll() {
      for (const child of started) child.kill('SIGKILL');
    },
  };
}

export function chooseAccount(as: string | undefined): { uid?: number; gid?: number } {
  return as === 'nobody' ? { uid: NOBODY, gid: NOBODY } : {};
}

export async function stopOwner({ child }: Owner): Promise<number | null> {
  child.kill('SIGTERM');
  const [code] = await once(child, 'exit');
  return code;
}

export async function killOwner({ child }: Owner): Promise<void> {
  child.kill('SIGKILL');
  await once(child, 'exit');
}

type Answer = Partial<Owner & { error: string; hint: string }>;

async function readAnswer(child: ChildProcess): Promise<Answer> {
  const [line] = await once(child.stdout as NodeJS.ReadableStream, 'data');
  return JSON.parse(String(line));
}

function listProcesses(scratch: string): { pid: number; name: string }[] {
  return fs.readdirSync('/proc').flatMap(pid => {
    try {
      if (!/^\d+$/.test(pid)) return [];
      if (!fs.readlinkSync(`/proc/${pid}/cwd`).startsWith(`${scratch}/`)) return [];
      const name = fs.readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
      return /^(postgres|initdb|sh)$/.test(name) ? [{ pid: Number(pid), name }] : [];
    } catch {
      return [];
    }
  });
}
