import { Readable } from 'node:stream';
import { WindlassError } from '../../shared/errors/errors.ts';
import type { RunEvent } from '../../workers/host-agent/protocol/run-event.ts';
import type { CommandDefaults } from '../../workers/ssh/command-defaults.ts';
import { SshError } from '../../workers/ssh/ssh-errors.ts';
import type { Actor } from './actor.ts';

/** What a command prints, in pieces. */
const PIECES = ['one ', 'two ', 'three'];
export const OUTPUT = PIECES.join('');

/** The exit status of a command that was stopped. */
const KILLED = 143;

interface Run {
  /** The token of the attempt that has the fence; undefined where a stop came first. */
  token: string | undefined;
  /** Pieces that it has printed. */
  printed: number;
  end?: number;
}

/** A request as the host gets it. */
export interface HostRequest {
  actor: Actor;
  job: string;
  kind: 'run' | 'exec';
}

const lost = () =>
  new WindlassError('remote_connection_failed', { detail: 'The connection was lost.' });

/** The host of all sessions: commands with an agent start at most once each, by their fences; all others when asked. */
export class SimulatedHost {
  readonly #runs = new Map<string, Run>();
  /** How often the command of each job was started. */
  readonly starts = new Map<string, number>();
  /** The job of a command without an agent, which is named in its text. */
  idOf: (command: string) => string = command => command;
  /** When a worker sends a request. */
  onSend: (request: HostRequest) => void = () => {};
  /** When a command starts. */
  onStart: (job: string) => void = () => {};

  /** What a worker has of the session of a job, with and without an agent; commands are named after their jobs. */
  connect(actor: Actor, connectedAt: number): object {
    const defaults: CommandDefaults = { startup: 'once', env: {} };
    return {
      connectedAt,
      defaults,
      agent: async () => this.#agent(actor, connectedAt),
      exec: (command: string, signal: AbortSignal, before: () => Promise<void>) =>
        this.#exec(actor, { job: this.idOf(command), signal, before }),
      close: () => {},
    };
  }

  #start(job: string): void {
    this.starts.set(job, (this.starts.get(job) ?? 0) + 1);
    this.onStart(job);
  }

  #agent(actor: Actor, confirmedAt: number): object {
    const ask = <T>(label: string, effect: () => T) => actor.call(() => label, effect, { lost });
    return {
      hello: { boot: 'boot', fences: 'fences' },
      confirmedAt,
      run: ({ id, token }: { id: string; token: string }) => {
        this.onSend({ actor, job: id, kind: 'run' });
        return this.#events(actor, id, () =>
          ask(`asks the host to run ${id}`, (): RunEvent => {
            const run = this.#runs.get(id);
            if (run) return { type: run.token === token ? 'running' : 'taken' };
            this.#runs.set(id, { token, printed: 0 });
            this.#start(id);
            return { type: 'running' };
          }),
        );
      },
      follow: ({ id, stdout }: { id: string; stdout: number }) =>
        this.#events(
          actor,
          id,
          () =>
            ask(`follows ${id} from ${stdout}`, (): RunEvent => {
              const run = this.#runs.get(id);
              if (!run) return { type: 'absent' };
              return { type: run.token ? 'running' : 'stopped' };
            }),
          stdout,
        ),
      ack: () => {},
      stop: (id: string) =>
        ask(`stops ${id}`, () => {
          const run = this.#runs.get(id);
          if (!run) this.#runs.set(id, { token: undefined, printed: 0, end: -1 });
          if (!run?.token) return { result: run ? 'stopped' : 'never_started' };
          if (run.end === undefined) run.end = KILLED;
          if (run.end !== KILLED) return { result: 'ended' };
          return { result: 'killed' };
        }),
    };
  }

  /** What the host tells of a run, a piece of output at a time. The command goes on by one piece when it is asked. */
  async *#events(
    actor: Actor,
    id: string,
    first: () => Promise<RunEvent>,
    from = 0,
  ): AsyncIterableIterator<RunEvent> {
    const begun = await first();
    yield begun;
    if (begun.type !== 'running') return;
    for (let offset = from; ; ) {
      const event = await actor.call(
        () => `reads what ${id} printed from ${offset}`,
        (): RunEvent => this.#next(id, offset),
        { lost },
      );
      yield event;
      if (event.type !== 'output') return;
      offset += event.bytes.length;
    }
  }

  #next(id: string, offset: number): RunEvent {
    const run = this.#runs.get(id);
    if (!run) return { type: 'absent' };
    const printed = () => Buffer.from(PIECES.slice(0, run.printed).join(''));
    if (offset >= printed().length && run.end === undefined) {
      if (run.printed < PIECES.length) run.printed++;
      else run.end = 0;
    }
    const bytes = printed().subarray(offset);
    if (bytes.length > 0) return { type: 'output', stream: 'stdout', offset, bytes };
    const size = printed().length;
    return {
      type: 'ended',
      code: run.end ?? 0,
      stdoutBytes: size,
      stderrBytes: 0,
      diskFull: false,
    };
  }

  async #exec(
    actor: Actor,
    { job, signal, before }: { job: string; signal: AbortSignal; before: () => Promise<void> },
  ): Promise<object> {
    await before();
    signal.throwIfAborted();
    this.onSend({ actor, job, kind: 'exec' });
    const unanswered = () => {
      const cause = new SshError('the connection was lost', { sent: true });
      return Object.assign(lost(), { cause });
    };
    await actor.call(
      () => `runs ${job} without an agent`,
      () => this.#start(job),
      { lost: unanswered },
    );
    const exit = actor
      .call(
        () => `waits for ${job}`,
        () => ({ code: 0, signal: null }),
        { lost },
      )
      .catch(() => ({ code: null, signal: null }));
    const stdout = Readable.from([Buffer.from(OUTPUT)], { objectMode: false });
    return {
      stdin: { end: () => {} },
      stdout,
      stderr: Readable.from([], { objectMode: false }),
      closed: exit,
      signal: () => {},
      destroy: () => stdout.destroy(),
    };
  }
}
