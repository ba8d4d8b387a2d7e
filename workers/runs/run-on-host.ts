import { abortableIterator } from '../../shared/abort.ts';
import { isDatabaseDown } from '../../shared/database/connect.ts';
import type { JobRow } from '../../shared/database/schema.ts';
import { type ErrorCode, WindlassError } from '../../shared/errors.ts';
import type { OutputOffsets, OutputStream } from '../../shared/jobs/output.ts';
import { type JobContext, ReleaseJob } from '../context.ts';
import { LeaseLost } from '../engine/claims.ts';
import { wasCancelled } from '../engine/job-signals.ts';
import type { AgentClient } from '../host-agent/client.ts';
import type { RunEvent } from '../host-agent/protocol/run-event.ts';
import { withSession } from '../ssh/reconnect.ts';
import type { RemoteSession } from '../ssh/remote-session.ts';
import {
  cancelledAway,
  cancelledUnseen,
  diskFull,
  explainShutOut,
  groupOnly,
  lost,
  unconfirmed,
  unknown,
} from './run-errors.ts';
import { StopDeadline } from './stop-deadline.ts';

/** A run may be asked for again, on the same boot, for so long; after that it is only followed. */
const REPEAT_MS = 12 * 3_600_000;
const WRONG_NODE_TRIES = 5;
/** A run on a host that cannot be reached is looked for this often, and given up after so long. */
const LOOK_AGAIN_SECONDS = 10;
const UNREACHABLE_FOR_MS = 12 * 3_600_000;
/** The host is there again later, perhaps: an agent cannot start on a full disk either. */
const AWAY: ErrorCode[] = ['remote_connection_failed', 'agent_startup_failed'];
const isAway = (error: unknown) => error instanceof WindlassError && AWAY.includes(error.code);

/** Where a run that is not found was never started: on the boot on which it was asked for, where the fences are the same. */
const placeOf = ({ hello }: AgentClient) => `${hello.boot} ${hello.fences}`;

export interface RunRequest {
  /** For the account's own shell. */
  command?: string;
  /** For /bin/sh, of any length. */
  script?: string;
}

/** Where a run's output goes. */
export interface RunSink {
  /** Settles what is under way and tells how far the output is safe: following starts there. */
  stored(): OutputOffsets | Promise<OutputOffsets>;
  take(stream: OutputStream, bytes: Buffer): Promise<void>;
  /** Told how to acknowledge, for as long as this connection lasts. */
  acknowledge?(ack: (stored: OutputOffsets) => void): void;
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
export async function runOnHost(
  context: JobContext,
  request: RunRequest,
  sink: RunSink,
): Promise<RunEnd> {
  const run = new Run(context, request, sink);
  try {
    // What was never asked for is cancelled here; what may run must be stopped on the host.
    const signal = () => (run.asked ? context.cleanupSignal : context.signal);
    return await withSession(context, session => run.carry(session), { signal });
  } catch (error) {
    if (run.asked && isAway(error)) throw await run.giveWay();
    throw explainShutOut(context, error);
  }
}

class Run {
  readonly #context: JobContext;
  readonly #request: RunRequest;
  readonly #sink: RunSink;
  /** Aborted when this worker must not go on with the run. */
  readonly signal: AbortSignal;
  #stopped: Promise<{ how: string } | undefined> | undefined;
  /** The host stopped it, as it says or as may be: its answer was lost. */
  #mayBeStopped = false;
  #wrongNode = 0;
  /** For the host to say that a cancelled run was stopped. */
  #wait: StopDeadline | undefined;
  /** Aborted, with what is thrown for it, when this connection cannot stop the run that must be stopped. */
  #useless = new AbortController();

  constructor(context: JobContext, request: RunRequest, sink: RunSink) {
    this.#context = context;
    this.#request = request;
    this.#sink = sink;
    this.signal = context.cleanupSignal;
  }

  /** The run may exist on the host: from here on, it is followed before it is asked for again. */
  get asked(): boolean {
    return this.#context.job.runAt !== null;
  }

  async carry(session: RemoteSession): Promise<RunEnd> {
    const useless = new AbortController();
    this.#useless = useless;
    this.#stopped = undefined;
    const { signal: cancel } = this.#context;
    const { limit } = this.#sink;
    const unwanted = limit ? AbortSignal.any([cancel, limit]) : cancel;
    const wait = new StopDeadline(unwanted, () => {
      useless.abort(this.#whyGivenUp());
      session.close();
    });
    this.#wait = wait;
    try {
      return await this.#carry(session);
    } catch (error) {
      if (!useless.signal.aborted) throw error;
      // Another one may reach the run's node, or an agent that answers.
      session.close();
      throw isAway(error) ? useless.signal.reason : error;
    } finally {
      wait.end();
    }
  }

  /** What is told where the host does not end the run, or not all that prints for it. */
  #whyGivenUp(): unknown {
    const { limit } = this.#sink;
    if (!wasCancelled(this.#context) && limit?.aborted) return limit.reason;
    // What was never asked for does not run.
    return this.asked ? unconfirmed() : new WindlassError('cancelled');
  }

  async #carry(session: RemoteSession): Promise<RunEnd> {
    const agent = await session.agent();
    const { job, signal: cancel } = this.#context;
    this.#sink.acknowledge?.(stored => agent.ack(job.id, stored.stdout, stored.stderr));
    const { limit } = this.#sink;
    const stop = () => {
      if (wasCancelled(this.#context) || limit?.aborted) this.#stop(agent);
    };
    cancel.addEventListener('abort', stop);
    limit?.addEventListener('abort', stop);
    try {
      if (this.asked) {
        stop();
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
    await this.#note({ runAt: new Date(), runPlace: placeOf(agent) });
  }

  async #note(set: Partial<JobRow>): Promise<void> {
    await this.#context.update(set);
    Object.assign(this.#context.job, set);
  }

  /** The host cannot be reached: the slot is given to other jobs, and the run is looked for again after a while. */
  async giveWay(): Promise<Error> {
    const { job } = this.#context;
    if (wasCancelled(this.#context)) return cancelledAway();
    const since = job.unreachableSince ?? new Date();
    if (Date.now() - since.getTime() > UNREACHABLE_FOR_MS)
      return unknown('The host could not be reached for too long.');
    await this.#note({ unreachableSince: since });
    return new ReleaseJob('the host cannot be reached', LOOK_AGAIN_SECONDS);
  }

  async #run(agent: AgentClient, session: RemoteSession): Promise<RunEnd> {
    const { job, token } = this.#context;
    // This connection may be younger than the claim: the fence on the host is kept for every connection that could still
    // carry a belated request, and only the row says whether this one is belated.
    await this.#context.assertLeased(session.since);
    const end = await this.#read(agent.run({ id: job.id, token, ...this.#request }), agent);
    return typeof end === 'object' ? end : this.#follow(agent, session);
  }

  async #follow(agent: AgentClient, session: RemoteSession): Promise<RunEnd> {
    const { job } = this.#context;
    const stored = await this.#meanwhile(() => this.#sink.stored());
    const end = await this.#read(agent.follow({ id: job.id, ...stored }), agent);
    if (typeof end === 'object') return end;
    if (wasCancelled(this.#context)) {
      await agent.stop(job.id);
      throw this.#neverRun(agent);
    }
    if (this.#wasAsked(agent) && Date.now() - Number(job.runAt) < REPEAT_MS)
      return this.#run(agent, session);
    throw unknown(
      'The host was started anew, is another one or had ~/.windlass removed, or too much time has passed: it has no record of the command.',
    );
  }

  /** Whether what this host has no record of was never started. */
  #wasAsked(agent: AgentClient): boolean {
    return this.#context.job.runPlace === placeOf(agent);
  }

  #neverRun(agent: AgentClient): WindlassError {
    return this.#wasAsked(agent) ? new WindlassError('cancelled') : cancelledUnseen();
  }

  #meanwhile<T>(work: () => T | Promise<T>, bytes = 0): Promise<T> {
    return this.#wait?.take(work, bytes) ?? Promise.resolve(work());
  }

  /** Output that cannot be taken, whatever the reason, must not leave a command behind that nobody listens to. */
  async #take(
    { stream, bytes }: Extract<RunEvent, { type: 'output' }>,
    agent: AgentClient,
  ): Promise<void> {
    try {
      await this.#meanwhile(() => this.#sink.take(stream, bytes), bytes.length);
    } catch (error) {
      if (!(error instanceof LeaseLost) && !isDatabaseDown(error))
        await agent.stop(this.#context.job.id).catch(() => {});
      throw error;
    }
  }

  /** Reads a run's events to their end. */
  async #read(
    events: AsyncIterableIterator<RunEvent>,
    agent: AgentClient,
  ): Promise<RunEnd | 'absent' | 'taken'> {
    const over = AbortSignal.any([this.signal, this.#useless.signal]);
    for await (const event of abortableIterator(events, over)) {
      switch (event.type) {
        case 'output':
          await this.#take(event, agent);
          break;
        case 'running':
          // A sign of life from the host: a run that lives is followed without limit.
          if (this.#context.job.consecutiveLosses > 0)
            await this.#context.update({ consecutiveLosses: 0 });
          this.#context.job.consecutiveLosses = 0;
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
          throw this.#neverRun(agent);
        case 'lost':
          throw lost(event.cause);
      }
    }
    throw new WindlassError('remote_connection_failed', { detail: 'The connection was lost.' });
  }

  /** Stops the run on the host, once for each connection; its output up to there still comes. */
  #stop(agent: AgentClient): void {
    if (this.#stopped) return;
    const useless = this.#useless;
    this.#stopped = agent.stop(this.#context.job.id).then(
      stopped => {
        if (stopped.how === 'left') {
          this.#wait?.wouldNotEnd();
          // What cannot be ended would print on, and would not stop at any limit.
          const { limit } = this.#sink;
          if (limit?.aborted) useless.abort(limit.reason);
        }
        if (stopped.how === 'wrong_node') useless.abort(this.#onWrongNode(stopped.node));
        // Its end may come over another connection, where a stop finds it ended.
        else if (stopped.how !== 'ended') {
          this.#mayBeStopped = true;
          this.#wait?.stopped(this.#context.worker.config.LIMIT_SPOOL_BYTES);
        }
        return stopped;
      },
      () => {
        this.#mayBeStopped = true;
        // Over another one it may be answered.
        useless.abort(
          new WindlassError('remote_connection_failed', {
            detail: 'The host did not say whether it stopped the run.',
          }),
        );
        return undefined;
      },
    );
  }

  /** A run that was stopped did not end by itself, unless it had ended before the host was told. */
  async #throwIfStopped(): Promise<void> {
    const stopped = await this.#stopped;
    if (!this.#mayBeStopped) return;
    this.#sink.limit?.throwIfAborted();
    throw stopped?.how === 'group' ? groupOnly() : new WindlassError('cancelled');
  }

  /** Its output can be followed from any node of its home; it can be stopped on its own alone. */
  #onWrongNode(node = 'another'): WindlassError {
    if (++this.#wrongNode < WRONG_NODE_TRIES)
      return new WindlassError('remote_connection_failed', {
        detail: `The run is on another node: ${node}.`,
      });
    const hint = `Have ${node} added as a host of its own, and stop it there.`;
    if (!wasCancelled(this.#context))
      return new WindlassError('wrong_node', {
        detail: `The run is on another node, ${node}, which was not reached to stop it there.`,
        hint,
      });
    return new WindlassError('cancelled', {
      detail: `Cancelled, but the command runs on another node, ${node}, which was not reached to stop it there.`,
      hint,
    });
  }
}
