import { type ChildProcess, spawn } from 'node:child_process';
import type { Logger } from '../../shared/log.ts';
import { readScript } from '../shell-script.ts';

const RESTART_MS = 100;

/** Kills what this process started and left, when it dies without stopping it. */
export interface Guard {
  add(pid: number): void;
  remove(pid: number): void;
  /** To be called when everything has been stopped. */
  close(): void;
}

/**
 * A small shell that holds a pipe from this process. Children end by themselves when their channel
 * closes; this is for one that is frozen, busy, or not ours. It is started anew when it is killed.
 */
export function startGuard(log: Logger): Guard {
  const known = new Set<number>();
  let guard: ChildProcess | undefined;
  let closed = false;

  const start = () => {
    guard = spawnGuard();
    for (const pid of known) tell(`+${pid}`);
    guard.on('error', error => log.warn({ error: error.message }, 'There is no guard'));
    guard.on('exit', () => {
      if (!closed) setTimeout(() => closed || start(), RESTART_MS).unref();
    });
  };
  const tell = (line: string) => guard?.stdin?.write(`${line}\n`);

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
      guard?.stdin?.end();
    },
  };
}

function spawnGuard(): ChildProcess {
  const guard = spawn(
    '/bin/sh',
    ['-c', readScript(new URL('./guard.sh', import.meta.url)), 'windlass-guard'],
    {
      cwd: '/',
      detached: true,
      env: { PATH: '/usr/local/bin:/usr/bin:/bin' },
      stdio: ['pipe', 'ignore', 'ignore'],
    },
  );
  guard.stdin?.on('error', () => {
    // It was killed; its exit starts another.
  });
  guard.unref();
  return guard;
}
