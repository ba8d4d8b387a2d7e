import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { awaitExit, endWithThisProcess } from './processes.ts';

export interface ServerOptions {
  /** Absolute path. */
  program: string;
  args: string[];
  /** The whole environment. */
  env: Record<string, string>;
  cwd?: string;
  /** The user to run as, if not this one. */
  user?: { uid: number; gid: number };
  /** Whether it accepts requests. Gets the output so far; a rejection means no. */
  isReady: (printed: string) => boolean | Promise<boolean>;
}

const START_MS = 30_000;

/** Starts a server that ends with this process. Rejects if it ends, with its last output, or is not ready within 30 s. */
export async function startServerProcess(options: ServerOptions): Promise<ChildProcess> {
  const { program, args, env, cwd, user, isReady } = options;
  const child = spawn(program, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], ...user });
  endWithThisProcess(child);
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', text => {
      printed = (printed + text).slice(-4_000);
    });
  }
  let hasEnded = false;
  void awaitExit(child).then(() => {
    hasEnded = true;
  });
  // A failed spawn has no exit.
  child.once('error', error => {
    printed += error.message;
    hasEnded = true;
  });
  const until = performance.now() + START_MS;
  for (;;) {
    const serves = await Promise.resolve(isReady(printed)).catch(() => false);
    // Check first: another server may have answered on that port.
    if (hasEnded) throw new Error(`${program} did not start: ${printed.trim().slice(-1_000)}`);
    if (serves) return child;
    if (performance.now() > until) {
      child.kill('SIGKILL');
      throw new Error(`${program} was not ready within ${START_MS / 1_000} s`);
    }
    await delay(50);
  }
}
