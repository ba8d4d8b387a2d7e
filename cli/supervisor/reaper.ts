import { type ChildProcess, spawn } from 'node:child_process';
import type { Logger } from '../../shared/log.ts';
import { readScript } from '../shell-script.ts';

const RESTART_MS = 100;

/** Kills what this process started and left, when it dies without stopping it. */
export interface Reaper {
  add(pid: number): void;
  remove(pid: number): void;
  /** To be called when everything has been stopped. */
  close(): void;
}

/**
 * A small shell that holds a pipe from this process. Children end by themselves when their channel
 * closes; this is for one that is frozen, busy, or not ours. It is started anew when it is killed.
 */
export function startReaper(log: Logger): Reaper {
  const known = new Set<number>();
  let reaper: ChildProcess | undefined;
  let closed = false;

  const start = () => {
    reaper = spawnReaper();
    for (const pid of known) tell(`+${pid}`);
    reaper.on('error', error => log.warn({ error: error.message }, 'There is no reaper'));
    reaper.on('exit', () => {
      if (!closed) setTimeout(() => closed || start(), RESTART_MS).unref();
    });
  };
  const tell = (line: string) => reaper?.stdin?.write(`${line}\n`);

  start();
  return {
    add(pid) {
      known.add(pid);
      tell(`+${pid}`);
    },
    remove(pid) {
      known.delete(pid);
      tell(`-${pid}`);
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
    // It was killed; its exit starts another.
  });
  reaper.unref();
  return reaper;
}
