import { setTimeout as delay } from 'node:timers/promises';
import { WindlassError } from '../../shared/errors.ts';
import type { Offsets, Stream } from '../../shared/jobs/output.ts';
import { type JobContext, LetGo } from '../context.ts';
import type { AgentClient, RunEvent } from './agent/client.ts';
import type { RemoteSession } from './remote-session.ts';

/** Before a run was ever asked for, a connection is tried for so long. */
const FIRST_CONNECT_MS = 60_000;
/** A run may be asked for again, on the same boot, for so long; after that it is only followed. */
const REPEAT_MS = 12 * 3_600_000;
/** After stop, the run's end is awaited for so long. */
const STOP_MS = 15_000;
const WRONG_NODE_TRIES = 5;

export interface RunRequest {
  /** For the account's own shell. */
  command?: string;
  /** For /bin/sh, of any length. */
  script?: string;
}

/** Where a run's output goes. */
export interface RunSink {
  /** How far the output is safe: following starts there, and the host may forget what lies before. */
  stored(): Offsets;
  take(stream: Stream, bytes: Buffer): Promise<void>;
  /** Told how to acknowledge, for as long as this connection lasts. */
  acknowledge?(ack: (stored: Offsets) => void): void;
  /** Aborted, with a WindlassError as its reason, when the run must be stopped for it. */
  limit?: AbortSignal;
}

export interface RunEnd {
  /** Exit status; 128 + n for a signal. */
  code: number;
  stdoutBytes: number;
  stderrBytes: number;
}

/**
 * Has a command run on the host exactly once and brings its output, through lost connections and workers. Returns when
 * it has ended; throws `outcome_unknown` where it cannot be known whether it ran, and never runs it a second time.
 */
export function carryRun(context: JobContext, request: RunRequest, sink: RunSink): Promise<RunEnd> {
  const run = new Run(context, request, sink);
  const limitMs = () => (run.asked ? REPEAT_MS : FIRST_CONNECT_MS);
  return whileConnected(context, session => run.carry(session), limitMs);
}

/**
 * Calls `work` with the session's connection, and again over a new one when it is lost, for `limitMs`. Throws LetGo when
 * the process stops, at once.
 */
export async function whileConnected<T>(
  context: JobContext,
  work: (session: RemoteSession) => Promise<T>,
  limitMs: () => number = () => FIRST_CONNECT_MS,
): Promise<T> {
  const signal = AbortSignal.any([context.signal, context.stopping]);
  const began = performance.now();
  for (let tries = 0; ; tries++) {
    try {
      return await context.worker.sessions.use(context.job.session ?? '', signal, work);
    } catch (error) {
      context.signal.throwIfAborted();
      if (context.stopping.aborted) throw new LetGo();
      const retryable = error instanceof WindlassError && error.retryable;
      if (!retryable || performance.now() - began > limitMs()) throw error;
      context.log.info({ err: error, tries }, 'connecting again');
      // Jittered, so that the jobs of a host that comes back do not all come at once.
      const pause = Math.min(250 * 2 ** tries, 10_000) * (0.5 + Math.random());
      await delay(pause, undefined, { signal }).catch(() => {});
    }
  }
}

class Run {
  readonly #context: JobContext;
  readonly #request: RunRequest;
  readonly #sink: RunSink;
  /** Aborted when this worker must not go on with the run. */
  readonly signal: AbortSignal;
  #stopped: Promise<{ how: string } | undefined> | undefined;
  #wrongNode = 0;

  constructor(context: JobContext, request: RunRequest, sink: RunSink) {
    this.#context = context;
    this.#request = request;
    this.#sink = sink;
    this.signal = AbortSignal.any([context.signal, context.stopping]);
  }

  /** The run may exist on the host: from here on, it is followed before it is asked for again. */
  get asked(): boolean {
    return this.#context.job.runAt !== null;
  }

  async carry(session: RemoteSession): Promise<RunEnd> {
    const agent = await session.agent();
    const { job, cancel } = this.#context;
    this.#stopped = undefined;
    this.#sink.acknowledge?.(stored => agent.ack(job.id, stored.stdout, stored.stderr));
    const { limit } = this.#sink;
    const stop = () => this.#stop(agent);
    cancel.addEventListener('abort', stop);
    limit?.addEventListener('abort', stop);
    try {
      if (this.asked) {
        if (cancel.aborted || limit?.aborted) stop();
        return await this.#follow(agent, session);
      }
      cancel.throwIfAborted();
      await this.#promise(agent);
      return await this.#run(agent, session);
    } finally {
      cancel.removeEventListener('abort', stop);
      limit?.removeEventListener('abort', stop);
    }
  }

  /** Committed before the host is asked for the first time: whoever takes over knows that it may have been. */
  async #promise(agent: AgentClient): Promise<void> {
    const promised = { runAt: new Date(), runBoot: agent.hello.boot };
    await this.#context.update(promised);
    Object.assign(this.#context.job, promised);
  }

  async #run(agent: AgentClient, session: RemoteSession): Promise<RunEnd> {
    const { job, token } = this.#context;
    // This connection may be younger than the claim: the fence on the host is kept for every connection that could still
    // carry a belated request, and only the row says whether this one is belated.
    await this.#context.assertHeld(session.since);
    const end = await this.#read(agent.run({ id: job.id, token, ...this.#request }));
    return typeof end === 'object' ? end : this.#follow(agent, session);
  }

  async #follow(agent: AgentClient, session: RemoteSession): Promise<RunEnd> {
    const { job, cancel } = this.#context;
    const end = await this.#read(agent.follow({ id: job.id, ...this.#sink.stored() }));
    if (typeof end === 'object') return end;
    if (cancel.aborted) {
      await agent.stop(job.id);
      throw new WindlassError('cancelled');
    }
    if (job.runBoot === agent.hello.boot && Date.now() - Number(job.runAt) < REPEAT_MS)
      return this.#run(agent, session);
    throw unknown(
      'The host was started anew, or too much time has passed, and it has no record of the command.',
    );
  }

  /** Reads a run's events to their end. */
  async #read(events: AsyncIterable<RunEvent>): Promise<RunEnd | 'absent' | 'taken'> {
    for await (const event of untilAborted(events, this.signal)) {
      switch (event.type) {
        case 'output':
          await this.#sink.take(event.stream, event.bytes);
          break;
        case 'running':
          // A sign of life from the host: a run that lives is followed without limit.
          if (this.#context.job.setbacks > 0) await this.#context.update({ setbacks: 0 });
          this.#context.job.setbacks = 0;
          break;
        case 'absent':
        case 'taken':
          return event.type;
        case 'ended':
          if (event.diskFull) throw diskFull();
          await this.#throwIfStopped();
          return {
            code: event.code,
            stdoutBytes: event.stdoutBytes,
            stderrBytes: event.stderrBytes,
          };
        case 'stopped':
          this.#sink.limit?.throwIfAborted();
          throw new WindlassError('cancelled');
        case 'lost':
          throw unknown(
            'What watched over the command on the host is gone and left no record of its end.',
          );
        case 'wrong_node':
          throw this.#elsewhere(event.node);
      }
    }
    throw new WindlassError('remote_connection_failed', { detail: 'The connection was lost.' });
  }

  /** Stops the run on the host, once for each connection; its output up to there still comes. */
  #stop(agent: AgentClient): void {
    if (this.#stopped) return;
    this.#stopped = agent.stop(this.#context.job.id).catch(() => undefined);
    const { log } = this.#context;
    setTimeout(() => log.warn('a stopped run did not end in time'), STOP_MS).unref();
  }

  /** A run that was stopped did not end by itself, unless it had ended before the host was told. */
  async #throwIfStopped(): Promise<void> {
    const stopped = await this.#stopped;
    if (!stopped || stopped.how === 'ended') return;
    this.#sink.limit?.throwIfAborted();
    throw new WindlassError('cancelled');
  }

  #elsewhere(node: string): WindlassError {
    const last = ++this.#wrongNode >= WRONG_NODE_TRIES;
    return new WindlassError(last ? 'wrong_node' : 'remote_connection_failed', {
      detail: `The run is on another node: ${node}.`,
      hint: 'Open the session with the name of that node.',
    });
  }
}

/** Passes events on until the signal is aborted; then leaves the source and throws the reason. */
async function* untilAborted<T>(source: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  const iterator = source[Symbol.asyncIterator]();
  let abort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
  });
  aborted.catch(() => {});
  try {
    for (;;) {
      const next = await Promise.race([iterator.next(), aborted]);
      if (next.done) return;
      yield next.value;
    }
  } finally {
    signal.removeEventListener('abort', abort);
    void iterator.return?.();
  }
}

function unknown(detail: string): WindlassError {
  return new WindlassError('outcome_unknown', {
    detail: `Outcome unknown: ${detail}`,
    hint: 'Look on the host what the command did before you start it again.',
  });
}

function diskFull(): WindlassError {
  return new WindlassError('remote_disk_full', {
    detail:
      "Remote disk full: the command's output could not be kept on the host, and it was stopped.",
    hint: "Free some space in the account's home on the host; what was written before can be read.",
  });
}
