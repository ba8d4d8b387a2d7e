import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../../shared/log.ts';
import type { Reaper } from './reaper.ts';
import { chooseRestartDelay } from './restart-delay.ts';

/** A process without a message is taken as ready after this; one that dies sooner was not. */
const SETTLED_AFTER_MS = 5_000;
/** A process that dies again and again after it was ready is back within 2 s, but not in a tight loop. */
const LONGEST_READY_DELAY_MS = 1_000;

export interface ProcessSpec {
  /** For the log; unique. */
  name: string;
  command: string[];
  /** The whole environment. */
  env?: Record<string, string | undefined>;
  cwd?: string;
  /** It sends `{ type: 'ready' }` over IPC when it can work (true). */
  readyMessage?: boolean;
}

export interface SupervisedProcess {
  readonly name: string;
  /** Undefined while it is not running. */
  readonly pid: number | undefined;
  readonly ready: boolean;
  /** SIGTERM, then after the grace (ms), or once a forced quit is asked for, SIGKILL. Resolves when it is gone. */
  stop(options: { graceMs: number; forceQuit: AbortSignal }): Promise<void>;
}

export interface KeepOptions {
  spec: ProcessSpec;
  log: Logger;
  reaper: Reaper;
  onReady(name: string, pid: number | undefined): void;
}

/**
 * Runs a process and runs it again whenever it ends, until it is stopped.
 *
 * Each is the leader of a session of its own: a Ctrl-C at the terminal does not reach it before its
 * turn, and what it started and left behind is found by its group and killed with it.
 */
export function keepProcess({ spec, log, reaper, onReady }: KeepOptions): SupervisedProcess {
  const closing = new AbortController();
  let child: ChildProcess | undefined;
  let ready = false;

  const run = async () => {
    let unready = 0;
    let readyDeaths = 0;
    while (!closing.signal.aborted) {
      const startedAt = Date.now();
      const outcome = await runOnce();
      if (closing.signal.aborted) return;
      if (outcome.wasReady) {
        unready = 0;
        readyDeaths = Date.now() - startedAt < SETTLED_AFTER_MS ? readyDeaths + 1 : 0;
      } else unready += 1;
      const wait = outcome.wasReady
        ? Math.min(chooseRestartDelay(readyDeaths), LONGEST_READY_DELAY_MS)
        : chooseRestartDelay(unready - 1);
      log.warn({ process: spec.name, ...outcome, restartInMs: wait }, 'A process ended unasked');
      await delay(wait, undefined, { signal: closing.signal }).catch(() => {});
    }
  };

  const runOnce = () =>
    new Promise<Outcome>(resolve => {
      const started = spawnProcess(spec);
      if (started instanceof Error) {
        resolve({ wasReady: false, error: started.message });
        return;
      }
      child = started;
      const { pid } = started;
      if (pid !== undefined) reaper.add(pid);
      const becomeReady = () => {
        if (ready || child !== started) return;
        ready = true;
        onReady(spec.name, pid);
      };
      const settled =
        (spec.readyMessage ?? true) ? undefined : setTimeout(becomeReady, SETTLED_AFTER_MS);
      started.on('message', message => {
        if (isReadyMessage(message)) becomeReady();
      });
      const finish = (outcome: Omit<Outcome, 'wasReady'>) => {
        clearTimeout(settled);
        if (child !== started) return;
        child = undefined;
        const wasReady = ready;
        ready = false;
        if (pid !== undefined) {
          killGroup(pid);
          reaper.remove(pid);
        }
        resolve({ wasReady, ...outcome });
      };
      started.once('exit', (code, signal) =>
        finish(signal ? { signal } : { code: code ?? undefined }),
      );
      // Also told of a message that could not be sent, or of a kill that failed: those end nothing.
      started.on('error', error => {
        if (pid === undefined) finish({ error: error.message });
      });
    });

  const done = run();
  return {
    name: spec.name,
    get pid() {
      return child?.pid;
    },
    get ready() {
      return ready;
    },
    async stop({ graceMs, forceQuit }) {
      closing.abort();
      child?.kill('SIGTERM');
      const kill = () => {
        if (child?.pid === undefined) return;
        log.warn({ process: spec.name }, 'A process is killed, for it did not stop in time');
        killGroup(child.pid);
      };
      const timer = setTimeout(kill, graceMs);
      forceQuit.addEventListener('abort', kill, { once: true });
      if (forceQuit.aborted) kill();
      await done;
      clearTimeout(timer);
      forceQuit.removeEventListener('abort', kill);
    },
  };
}

interface Outcome {
  wasReady: boolean;
  code?: number;
  signal?: NodeJS.Signals;
  error?: string;
}

function spawnProcess({ command, env, cwd }: ProcessSpec): ChildProcess | Error {
  const [program = '', ...args] = command;
  try {
    // Output is inherited: no line is lost or held up by whatever happens to this process.
    return spawn(program, args, {
      env,
      cwd,
      detached: true,
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

function isReadyMessage(message: unknown): boolean {
  return (
    typeof message === 'object' && message !== null && 'type' in message && message.type === 'ready'
  );
}

/** The leader and all that it started and that did not leave its group. */
function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // Nobody is left in it.
  }
}
