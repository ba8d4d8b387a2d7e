import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { readScript } from '../shell-script.ts';
import { explainSwitch, type ServiceUser } from './service-user.ts';

/** Found in its command line by keeper.sh: the name that every keeper goes by. */
const KEEPER_NAME = 'windlass-postgres-keeper';
/** Time for a last checkpoint, before the keeper is told to insist. */
const FAST_STOP_MS = 20_000;
/** The keeper asks, insists and kills in steps of 4 s: past this it is itself frozen. */
const FORCED_STOP_MS = 12_000;

/** What Postgres is given of an environment: its words and times are the same on every machine. */
const ENVIRONMENT = { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' };

export interface KeptOptions {
  /** The data directory; its real path, as the kernel names a working directory. */
  directory: string;
  command: string[];
  user: ServiceUser | undefined;
  /** Descriptor that the command's output goes to. */
  output: number;
}

export interface KeptCommand {
  pid: number;
  /** The exit code, 128 + n for a signal; undefined when the keeper itself was killed. */
  exited: Promise<number | undefined>;
  /** Stops it in order, by force after 20 s, and resolves within 33 s. */
  stop(): Promise<void>;
}

/**
 * Runs a command in a session of its own, under a small shell that stops it when this process dies.
 * The shell is its parent and is there first, so there is no moment at which dying orphans it.
 */
export async function runKept(options: KeptOptions): Promise<KeptCommand> {
  const { directory, command, user, output } = options;
  const keeper = spawnScript(['keep', directory, ...command], {
    user,
    cwd: directory,
    stdio: ['ignore', 'pipe', output, 'pipe'],
  });
  const exited = waitForExit(keeper, user);
  const control = keeper.stdio[3] as Writable;
  control.on('error', () => {
    // The keeper is gone; its exit says the rest.
  });
  // Lets go of the keeper's watcher too, should the keeper alone have been killed.
  const release = () => void control.destroy();
  exited.then(release, release);
  const pid = await Promise.race([readPid(keeper.stdout as Readable), exited.then(() => NaN)]);
  if (Number.isNaN(pid)) throw new Error('The keeper of Postgres ended before it began.');
  return {
    pid,
    exited,
    async stop() {
      control.write('stop\n');
      const timers = [
        setTimeout(() => control.end(), FAST_STOP_MS),
        setTimeout(() => keeper.kill('SIGKILL'), FAST_STOP_MS + FORCED_STOP_MS),
      ];
      await exited;
      for (const timer of timers) clearTimeout(timer);
    },
  };
}

/**
 * Stops whatever still runs on a data directory: the Postgres and the keeper that a killed supervisor
 * left, or backends whose postmaster was killed. Does nothing, in some 20 ms, where nothing runs.
 * Resolves to false when something withstood it for 10 s.
 */
export async function clearDirectory({
  directory,
  user,
}: Pick<KeptOptions, 'directory' | 'user'>): Promise<boolean> {
  const script = spawnScript(['clear', directory], { user, cwd: '/', stdio: 'ignore' });
  return (await waitForExit(script, user)) === 0;
}

function spawnScript(
  args: string[],
  { user, ...options }: { user: ServiceUser | undefined; cwd: string; stdio: StdioOptions },
): ChildProcess {
  const script = readScript(new URL('./keeper.sh', import.meta.url));
  try {
    return spawn('/bin/sh', ['-c', script, KEEPER_NAME, ...args], {
      ...options,
      detached: true,
      env: ENVIRONMENT,
      ...(user ? { uid: user.uid, gid: user.gid } : {}),
    });
  } catch (error) {
    throw explainSwitch(error, user);
  }
}

type StdioOptions = 'ignore' | ('ignore' | 'pipe' | number)[];

function waitForExit(
  child: ChildProcess,
  user: ServiceUser | undefined,
): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    child.once('error', error => reject(explainSwitch(error, user)));
    child.once('exit', code => resolve(code ?? undefined));
  });
}

async function readPid(stdout: Readable): Promise<number> {
  stdout.setEncoding('utf8');
  let text = '';
  while (!text.includes('\n')) {
    const [chunk] = await once(stdout, 'data');
    text += chunk;
  }
  return Number.parseInt(text, 10);
}
