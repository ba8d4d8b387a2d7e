import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';

/** `windlass up` sends this when a process is ready. */
interface ReadyMessage {
  process: string;
  pid: number;
}

/** A process that is not ready by then has a problem, which it logs. */
const READY_MS = 20_000;

/** Runs `windlass up` and restarts single processes of it. It ends with this process. */
export class DevStack {
  readonly #command: string[];
  readonly #environment: NodeJS.ProcessEnv;
  /** The pid of each process that is ready and was not asked to stop. */
  readonly #ready = new Map<string, number>();
  /** Every process that has ever been ready. */
  readonly #names = new Set<string>();
  #supervisor: ChildProcess | undefined;
  #isStopping = false;

  constructor(options: { command: string[]; environment: NodeJS.ProcessEnv }) {
    this.#command = options.command;
    this.#environment = options.environment;
  }

  start(): void {
    this.#begin(this.#load());
  }

  /** A supervisor that loads its modules and waits. */
  #load(): ChildProcess {
    const [program = '', ...args] = this.#command;
    return spawn(program, args, {
      env: this.#environment,
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      // A separate process group: Ctrl-C reaches only this process, which then stops the stack.
      detached: true,
    });
  }

  #begin(supervisor: ChildProcess): void {
    this.#supervisor = supervisor;
    this.#isStopping = false;
    supervisor.on('message', (message: Partial<ReadyMessage>) => {
      const { process: name, pid } = message;
      if (name === undefined || pid === undefined) return;
      this.#names.add(name);
      this.#ready.set(name, pid);
    });
    const onExit = (code: number | null, signal: NodeJS.Signals | null) => {
      this.#supervisor = undefined;
      this.#ready.clear();
      if (this.#isStopping) return;
      console.error(`windlass up ended with ${signal ?? code}; the next change starts it again.`);
    };
    const { exitCode, signalCode } = supervisor;
    if (exitCode === null && signalCode === null) supervisor.once('exit', onExit);
    // It could not even load.
    else onExit(exitCode, signalCode);
    supervisor.send('start', () => {});
  }

  /** Stops everything in order; called again meanwhile, without waiting for work in progress. */
  async stop(): Promise<void> {
    if (!this.#supervisor) return;
    this.#isStopping = true;
    const ended = once(this.#supervisor, 'exit');
    this.#supervisor.kill('SIGTERM');
    await ended;
  }

  /** Stops everything and starts it again. Returns the pids of the processes that are ready, by name, until the signal. */
  async restartAll(signal: AbortSignal): Promise<Map<string, number>> {
    const next = this.#load();
    await this.stop();
    this.#begin(next);
    return this.#waitUntilReady([...this.#names], signal);
  }

  /** Stops these processes, which the supervisor starts again; restarts everything where one of them does not run. */
  async restart(
    isWanted: (name: string) => boolean,
    signal: AbortSignal,
  ): Promise<Map<string, number>> {
    const names = [...this.#names].filter(isWanted);
    const areRunning = names.length > 0 && names.map(name => this.#signal(name)).every(Boolean);
    return areRunning ? this.#waitUntilReady(names, signal) : this.restartAll(signal);
  }

  #signal(name: string): boolean {
    const pid = this.#ready.get(name);
    this.#ready.delete(name);
    try {
      return pid !== undefined && process.kill(pid, 'SIGTERM');
    } catch {
      return false;
    }
  }

  async #waitUntilReady(names: string[], signal: AbortSignal): Promise<Map<string, number>> {
    const until = performance.now() + READY_MS;
    const isWaiting = () => this.#supervisor && !signal.aborted && performance.now() < until;
    while (isWaiting() && !names.every(name => this.#ready.has(name))) await delay(10);
    return new Map([...this.#ready].filter(([name]) => names.includes(name)));
  }
}
