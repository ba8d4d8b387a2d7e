import { type ChildProcess, spawn } from 'node:child_process';
import type { Logger } from '../../shared/process/log.ts';
import { readShellScript } from '../read-shell-script.ts';

const RESTART_MS = 100;
/** What is lacking, such as memory or file descriptors, does not come back at once. */
const FAILED_START_MS = 1_000;

/** Kills orphaned children: those that still run when this process has died. */
export interface Reaper {
  add(pid: number): void;
  remove(pid: number): void;
  /** Call it when every process has been stopped. */
  close(): void;
}

/**
 * Starts a shell that reads a pipe from this process. Our programs end when their IPC channel closes; the reaper ends
 * frozen, busy and other programs. It is restarted when it is killed.
 */
export function startReaper(log: Logger): Reaper {
  // Read once: where descriptors are lacking it could not be read again.
  const script = readShellScript(new URL('./reaper.sh', import.meta.url));
  const known = new Set<number>();
  let reaper: ChildProcess | undefined;
  let closed = false;

  const startAgain = (ms: number) => {
    if (!closed) setTimeout(() => closed || start(), ms).unref();
  };
  const startLater = (error: unknown) => {
    log.warn({ error: (error as Error).message }, 'The reaper could not be started');
    startAgain(FAILED_START_MS);
  };
  const start = () => {
    try {
      reaper = spawnReaper(script);
    } catch (error) {
      // A lack of memory is thrown, where that of descriptors is an event.
      startLater(error);
      return;
    }
    for (const pid of known) send(`+${pid}`);
    reaper.once('exit', () => startAgain(RESTART_MS));
    // One that could not be started does not exit.
    reaper.once('error', startLater);
  };
  const send = (line: string) => reaper?.stdin?.write(`${line}\n`);

  start();
  return {
    add(pid) {
      known.add(pid);
      send(`+${pid}`);
    },
    remove(pid) {
      known.delete(pid);
      send(`-${pid}`);
    },
    close() {
      closed = true;
      reaper?.stdin?.end();
    },
  };
}

function spawnReaper(script: string): ChildProcess {
  const reaper = spawn('/bin/sh', ['-c', script, 'windlass-reaper'], {
    cwd: '/',
    detached: true,
    env: { PATH: '/usr/local/bin:/usr/bin:/bin' },
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  reaper.stdin?.on('error', () => {
    // The exit of a killed reaper starts another.
  });
  reaper.unref();
  return reaper;
}
