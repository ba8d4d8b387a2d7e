import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { sleep } from '../../shared/process/abort.ts';
import type { Logger } from '../../shared/process/log.ts';
import {
  type Environment,
  type Secrets,
  secretsMessage,
} from '../../shared/secrets/handed-secrets.ts';
import type { Reaper } from './reaper.ts';
import { addEnd, type RestartHistory, restartDelay, SETTLED_AFTER_MS } from './restart-delay.ts';
import { spawnInNamespace, type UserNamespace } from './user-namespace.ts';

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

interface Options {
  spec: ProcessSpec;
  log: Logger;
  reaper: Reaper;
  onReady(name: string, pid: number | undefined): void;
}

/** How a process ended. */
interface End {
  code?: number;
  signal?: NodeJS.Signals;
  error?: string;
}

type Outcome = End & { wasReady: boolean };

/**
 * Runs a process and restarts it whenever it ends, until it is stopped. Each leads a session of its own: Ctrl-C does
 * not reach it, so that groups stop in order, and its orphaned children are killed with its process group.
 */
export class SupervisedProcess {
  readonly #options: Options;
  readonly #closing = new AbortController();
  readonly #ended: Promise<void>;
  #child: ChildProcess | undefined;
  #isReady = false;
  #secrets: Secrets | undefined;

  constructor(options: Options) {
    this.#options = options;
    this.#secrets = options.spec.secrets;
    this.#ended = this.#run();
  }

  get name(): string {
    return this.#options.spec.name;
  }

  get isReady(): boolean {
    return this.#isReady;
  }

  /** Hands other secrets over, also to the processes that follow. */
  handOver(secrets: Secrets): void {
    this.#secrets = secrets;
    if (this.#child?.connected) send(this.#child, secrets);
  }

  /** SIGTERM, then SIGKILL after the grace (ms) or on a forced shutdown. Resolves when it has ended. */
  async stop(options: { graceMs: number; forceShutdown: AbortSignal }): Promise<void> {
    const { graceMs, forceShutdown } = options;
    this.#closing.abort();
    this.#child?.kill('SIGTERM');
    const kill = () => this.#kill();
    const timer = setTimeout(kill, graceMs);
    forceShutdown.addEventListener('abort', kill, { once: true });
    if (forceShutdown.aborted) kill();
    await this.#ended;
    clearTimeout(timer);
    forceShutdown.removeEventListener('abort', kill);
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    let history: RestartHistory = { unreadyStarts: 0, earlyEnds: 0 };
    while (!signal.aborted) {
      const startedAt = Date.now();
      const outcome = await this.#runOnce();
      if (signal.aborted) return;
      const { wasReady } = outcome;
      history = addEnd(history, { wasReady, ranMs: Date.now() - startedAt });
      const restartInMs = restartDelay(history);
      this.#options.log.warn(
        { process: this.name, ...outcome, restartInMs },
        'A process ended and is restarted',
      );
      await sleep(signal, restartInMs);
    }
  }

  async #runOnce(): Promise<Outcome> {
    const { spec, reaper } = this.#options;
    const child = spawnProcess(spec);
    if (child instanceof Error) return { wasReady: false, error: child.message };
    this.#child = child;
    if (this.#secrets) send(child, this.#secrets);
    if (child.pid !== undefined) reaper.add(child.pid);
    const becomeReady = () => this.#becomeReady(child);
    const settled =
      (spec.readyMessage ?? true) ? undefined : setTimeout(becomeReady, SETTLED_AFTER_MS);
    child.on('message', message => {
      if (isReadyMessage(message)) becomeReady();
    });
    const end = await waitForEnd(child);
    clearTimeout(settled);
    return this.#finish(child, end);
  }

  #becomeReady(child: ChildProcess): void {
    if (this.#isReady || this.#child !== child) return;
    this.#isReady = true;
    this.#options.onReady(this.name, child.pid);
  }

  #finish({ pid }: ChildProcess, end: End): Outcome {
    const wasReady = this.#isReady;
    this.#child = undefined;
    this.#isReady = false;
    if (pid !== undefined) {
      killGroup(pid);
      this.#options.reaper.remove(pid);
    }
    return { wasReady, ...end };
  }

  #kill(): void {
    if (this.#child?.pid === undefined) return;
    this.#options.log.warn({ process: this.name }, 'A process did not stop in time and is killed');
    killGroup(this.#child.pid);
  }
}

const waitForEnd = (child: ChildProcess) =>
  new Promise<End>(resolve => {
    child.once('exit', (code, signal) =>
      resolve(signal ? { signal } : { code: code ?? undefined }),
    );
    // Also reports failed messages and kills, after which the process still runs.
    child.on('error', error => {
      if (child.pid === undefined) resolve({ error: error.message });
    });
  });

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
