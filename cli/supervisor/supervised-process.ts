import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../../shared/process/log.ts';
import {
  type Environment,
  type Secrets,
  secretsMessage,
} from '../../shared/secrets/handed-secrets.ts';
import type { Reaper } from './reaper.ts';
import { chooseRestartBackoff } from './restart-backoff.ts';
import { spawnInNamespace, type UserNamespace } from './user-namespace.ts';

/** A process that sends no message counts as ready after this time. */
const SETTLED_AFTER_MS = 5_000;
/** Keeps a process that dies repeatedly after it was ready from restarting in a tight loop; it is back within 2 s. */
const LONGEST_READY_DELAY_MS = 1_000;

export interface ProcessSpec {
  /** Unique; for the log. */
  name: string;
  command: string[];
  /** The whole environment. */
  env?: Environment;
  /** Handed over to each process that is started, over its IPC channel. */
  secrets?: Secrets;
  cwd?: string;
  /** Another user than this process's, who must be root. */
  user?: { uid: number; gid: number } | undefined;
  /** Instead of a user. */
  namespace?: UserNamespace | undefined;
  /** Whether it sends `{ type: 'ready' }` over IPC when it is ready (true). */
  readyMessage?: boolean;
}

export interface SupervisedProcess {
  readonly name: string;
  /** Undefined while it does not run. */
  readonly pid: number | undefined;
  readonly ready: boolean;
  /** Hands other secrets over, also to the processes that follow. */
  handOver(secrets: Secrets): void;
  /** SIGTERM, then SIGKILL after the grace (ms) or on a forced shutdown. Resolves when it has ended. */
  stop(options: { graceMs: number; forceShutdown: AbortSignal }): Promise<void>;
}

interface Options {
  spec: ProcessSpec;
  log: Logger;
  reaper: Reaper;
  onReady(name: string, pid: number | undefined): void;
}

/**
 * Runs a process and restarts it whenever it ends, until it is stopped. Each leads a session of its own: Ctrl-C does
 * not reach it, so that groups stop in order, and its orphaned children are killed with its process group.
 */
export function superviseProcess({ spec, log, reaper, onReady }: Options): SupervisedProcess {
  const closing = new AbortController();
  let child: ChildProcess | undefined;
  let ready = false;
  let { secrets } = spec;

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
        ? Math.min(chooseRestartBackoff(readyDeaths), LONGEST_READY_DELAY_MS)
        : chooseRestartBackoff(unready - 1);
      log.warn(
        { process: spec.name, ...outcome, restartInMs: wait },
        'A process ended and is restarted',
      );
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
      if (secrets) send(started, secrets);
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
      // Also reports failed messages and kills, after which the process still runs.
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
    handOver(renewed) {
      secrets = renewed;
      if (child?.connected) send(child, renewed);
    },
    async stop({ graceMs, forceShutdown }) {
      closing.abort();
      child?.kill('SIGTERM');
      const kill = () => {
        if (child?.pid === undefined) return;
        log.warn({ process: spec.name }, 'A process did not stop in time and is killed');
        killGroup(child.pid);
      };
      const timer = setTimeout(kill, graceMs);
      forceShutdown.addEventListener('abort', kill, { once: true });
      if (forceShutdown.aborted) kill();
      await done;
      clearTimeout(timer);
      forceShutdown.removeEventListener('abort', kill);
    },
  };
}

interface Outcome {
  wasReady: boolean;
  code?: number;
  signal?: NodeJS.Signals;
  error?: string;
}

function spawnProcess({ command, env, cwd, user, namespace }: ProcessSpec): ChildProcess | Error {
  const [program = '', ...args] = command;
  // Inherited output: no line is lost or delayed when this process dies or blocks.
  const stdio = ['ignore', 'inherit', 'inherit', 'ipc'] satisfies StdioOptions;
  const options = { env, cwd, detached: true, stdio };
  try {
    return namespace
      ? spawnInNamespace(command, namespace, options)
      : spawn(program, args, { ...options, uid: user?.uid, gid: user?.gid });
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

/** A process that ends meanwhile is started again, with the newest secrets. */
function send(child: ChildProcess, secrets: Secrets): void {
  child.send?.(secretsMessage(secrets), () => {});
}

function isReadyMessage(message: unknown): boolean {
  return (
    typeof message === 'object' && message !== null && 'type' in message && message.type === 'ready'
  );
}

/** Kills a leader with its process group. */
function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // The group is empty.
  }
}
