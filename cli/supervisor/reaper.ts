import { type ChildProcess, spawn } from 'node:child_process';
import type { Logger } from '../../shared/process/log.ts';
import { readScript } from '../shell-script.ts';

const RESTART_MS = 100;

/** Kills orphaned children: those that still run when this process has died. */
export interface Reaper {
  add(pid: number): void;
  remove(pid: number): void;
  /** Call it when every process has been stopped. */
  close(): void;
}

/**
 * Starts a shell that reads a pipe from this process. Our programs end by themselves when their IPC channel closes; the
 * reaper is for those that are frozen or busy and for other programs. It is restarted when it is killed.
 */
export function startReaper(log: Logger): Reaper {
  const known = new Set<number>();
  let reaper: ChildProcess | undefined;
  let closed = false;

  const start = () => {
    reaper = spawnReaper();
    for (const pid of known) send(`+${pid}`);
    reaper.on('error', error =>
      log.warn({ error: error.message }, 'The reaper could not be started'),
    );
    reaper.on('exit', () => {
      if (!closed) setTimeout(() => closed || start(), RESTART_MS).unref();
    });
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

function spawnReaper(): ChildProcess {
  const reaper = spawn(
    '/bin/sh',
    ['-c', readScript(new URL('./reaper.sh', import.meta.url)), 'windlass-reaper'],
    {
      cwd: '/',
      detached: true,
      env: { PATH: '/usr/local/bin:/usr/bin:/bin' },
      stdio: ['pipe', 'ignore', 'ignore'],
    },
  );
  reaper.stdin?.on('error', () => {
    // The exit of a killed reaper starts another.
  });
  reaper.unref();
  return reaper;
}
