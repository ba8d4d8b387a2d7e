import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import type { SystemUser } from '../../shared/process/system-users.ts';
import { readShellScript } from '../read-shell-script.ts';
import { translateSwitchError } from './postgres-user.ts';

/** wrapper.sh finds wrappers by this word in their command line. */
const WRAPPER_NAME = 'windlass-postgres-wrapper';
/** Time for the shutdown checkpoint, before the wrapper forces the stop. */
const FAST_STOP_MS = 20_000;
/** The wrapper sends INT, QUIT and KILL in steps of 4 s: after this time it must be frozen itself. */
const FORCED_STOP_MS = 12_000;

/** The whole environment of Postgres, so that its messages and times are the same on every machine. */
const ENVIRONMENT = { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' };

interface WrapOptions {
  /** The real path of the data directory: wrapper.sh compares it with working directories. */
  directory: string;
  command: string[];
  user: SystemUser | undefined;
  /** Descriptor for the command's output. */
  output: number;
}

export interface WrappedCommand {
  pid: number;
  /** The exit code, 128 + n for a signal; undefined if the wrapper itself was killed. */
  exited: Promise<number | undefined>;
  /** Stops it in order, by force after 20 s. Resolves within 33 s. */
  stop(): Promise<void>;
}

/**
 * Runs a command in a session of its own, inside a wrapper: a shell that stops the command when this process dies.
 * The wrapper starts the command, so there is no moment at which the command would be orphaned.
 */
export async function runWrapped(options: WrapOptions): Promise<WrappedCommand> {
  const { directory, command, user, output } = options;
  const wrapper = spawnScript(['run', directory, ...command], {
    user,
    cwd: directory,
    stdio: ['ignore', 'pipe', output, 'pipe'],
  });
  const exited = waitForExit(wrapper, user);
  const control = wrapper.stdio[3] as Writable;
  control.on('error', () => {
    // The wrapper has ended; `exited` says how.
  });
  // Also ends the wrapper's watcher, if the wrapper alone was killed.
  const release = () => void control.destroy();
  exited.then(release, release);
  const pid = await Promise.race([readPid(wrapper.stdout as Readable), exited.then(() => NaN)]);
  if (Number.isNaN(pid))
    throw new Error('The wrapper of Postgres ended before it started its command.');
  return {
    pid,
    exited,
    async stop() {
      control.write('stop\n');
      const timers = [
        setTimeout(() => control.end(), FAST_STOP_MS),
        setTimeout(() => wrapper.kill('SIGKILL'), FAST_STOP_MS + FORCED_STOP_MS),
      ];
      await exited;
      for (const timer of timers) clearTimeout(timer);
    },
  };
}

/**
 * Stops the processes that still run on a data directory: the Postgres and wrapper of a killed supervisor, or the
 * backends of a killed postmaster. Takes 20 ms where nothing runs. False if something still runs after 10 s.
 */
export async function stopOrphans(directory: string, user: WrapOptions['user']): Promise<boolean> {
  const script = spawnScript(['stop-orphans', directory], { user, cwd: '/', stdio: 'ignore' });
  return (await waitForExit(script, user)) === 0;
}

function spawnScript(
  args: string[],
  { user, ...options }: { user: SystemUser | undefined; cwd: string; stdio: StdioOptions },
): ChildProcess {
  const script = readShellScript(new URL('./wrapper.sh', import.meta.url));
  try {
    return spawn('/bin/sh', ['-c', script, WRAPPER_NAME, ...args], {
      ...options,
      detached: true,
      env: ENVIRONMENT,
      ...(user ? { uid: user.uid, gid: user.gid } : {}),
    });
  } catch (error) {
    throw translateSwitchError(error, user);
  }
}

type StdioOptions = 'ignore' | ('ignore' | 'pipe' | number)[];

function waitForExit(
  child: ChildProcess,
  user: SystemUser | undefined,
): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    child.once('error', error => reject(translateSwitchError(error, user)));
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
