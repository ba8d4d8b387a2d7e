import { isDatabaseDown } from '../../shared/database/connect.ts';
import { WindlassError } from '../../shared/errors/errors.ts';
import { runSent, wasSentElsewhere } from '../../shared/jobs/run-intent.ts';
import { abortable, abortableIterator, sleep } from '../../shared/process/abort.ts';
import type { SessionContext } from '../context.ts';
import { LeaseRevoked } from '../engine/claim.ts';
import { wasCancelled } from '../engine/job-signals.ts';
import { ReleaseJob } from '../engine/release-job.ts';
import type { AgentClient, RunRequest } from '../host-agent/client.ts';
import type { RunEvent } from '../host-agent/protocol/run-event.ts';
import type { CommandDefaults } from '../ssh/command-defaults.ts';
import {
  findUnreachableSince,
  isUnreachable,
  isUnreachableTooLong,
} from '../ssh/host-unreachable.ts';
import { withSession } from '../ssh/reconnect.ts';
import type { RemoteSession } from '../ssh/remote-session.ts';
import type { CommandSink } from './command-sink.ts';
import { explainAccessDenied, toError } from './run-errors.ts';
import {
  beginRun,
  type Effect,
  type RunEnd,
  type RunInput,
  type RunOutcome,
  type RunState,
  transition,
} from './run-state.ts';
import { StopDeadline } from './stop-deadline.ts';

/** For so long a run may be requested again on the same boot; after that it is only followed. */
const REPEAT_MS = 12 * 3_600_000;
/** The mean wait before a new request on an account that has no process left. */
const CROWDED_MS = 300;

export type RunScript = Pick<RunRequest, 'command' | 'script' | 'reader'>;

/** Given by the account's shell, and how the session's commands are run, where these matter. */
type Requested = RunScript | ((on: { shell: string; defaults: CommandDefaults }) => RunScript);

/**
 * Runs a command on the host exactly once and stores its output, through lost connections and workers. Returns at its
 * end; throws `outcome_unknown` if nobody can know whether it ran.
 */
export async function runOnHost(
  context: SessionContext,
  request: Requested,
  sink: CommandSink,
): Promise<RunEnd> {
  const run = new Run(context, request, sink);
  try {
    return await withSession(context, session => run.connect(session), {
      signal: () => run.signal,
    });
  } catch (error) {
    if (run.isRequested && isUnreachable(error)) return await run.yieldSlot(error);
    throw explainAccessDenied(context, error);
  } finally {
    run.close();
  }
}

type OutputEvent = Extract<RunEvent, { type: 'output' }>;

interface Connection {
  session: RemoteSession;
  deadline: StopDeadline;
  /** Set once it answers. */
  agent?: AgentClient;
  /** Settles when the answer to the stop has been dispatched. */
  stopping?: Promise<void>;
}

/** Does what the state machine of run-state.ts asks for, and tells it what happens. */
class Run {
  readonly #context: SessionContext;
  readonly #request: Requested;
  readonly #sink: CommandSink;
  /** Signals that may abort with a cancel or a limit. */
  readonly #sources: AbortSignal[];
  /** Since when the host was unreachable as the attempt began. */
  readonly #foundUnreachableSince: Date | null;
  #state: RunState;
  #connection: Connection | undefined;
  /** Aborted when the phase changes. */
  #phase = new AbortController();

  constructor(context: SessionContext, request: Requested, sink: CommandSink) {
    this.#context = context;
    this.#foundUnreachableSince = context.job.unreachableSince;
    this.#request = request;
    this.#sink = sink;
    this.#sources = [context.signal, sink.limit];
    this.#state = beginRun({ isRequested: context.job.runAt !== null });
    this.#checkUnwanted();
    for (const source of this.#sources) source.addEventListener('abort', this.#checkUnwanted);
  }

  close(): void {
    for (const source of this.#sources) source.removeEventListener('abort', this.#checkUnwanted);
  }

  get isRequested(): boolean {
    return this.#state.isRequested;
  }

  /**
   * Aborted when this worker must leave the run. A cancel does so only before the request: after it the host must stop
   * the run.
   */
  get signal(): AbortSignal {
    return this.isRequested ? this.#context.cleanupSignal : this.#context.signal;
  }

  /** Follows the run over one connection. Throws `remote_connection_failed` where another connection may help. */
  async connect(session: RemoteSession): Promise<RunEnd> {
    const unwanted = AbortSignal.any(this.#sources);
    const deadline = new StopDeadline(unwanted, () => this.#dispatch({ type: 'stopOverdue' }));
    const connection: Connection = { session, deadline };
    this.#connection = connection;
    let outcome: RunOutcome | undefined;
    try {
      const agent = await abortable(session.agent(), this.signal);
      connection.agent = agent;
      const { id } = this.#context.job;
      this.#sink.acknowledge?.(stored => agent.ack(id, stored.stdout, stored.stderr));
      this.#dispatch({ type: 'connected', ...this.#comparePlace(agent) });
      while (!this.#state.outcome) await this.#act(agent, connection);
    } catch (error) {
      // A connection that was closed for the outcome fails for that.
      if (!this.#state.outcome || !isUnreachable(error)) throw error;
    } finally {
      deadline.clear();
      this.#connection = undefined;
      outcome = this.#state.outcome;
      this.#dispatch({ type: 'disconnected' });
    }
    return this.#settle(outcome);
  }

  /** Releases the job of an unreachable host, so that its slot serves others, or gives the run up. */
  async yieldSlot(error: unknown): Promise<RunEnd> {
    const since = findUnreachableSince(
      this.#context.job.unreachableSince,
      error,
      this.#foundUnreachableSince,
    );
    this.#dispatch({ type: 'unreachable', isTooLong: isUnreachableTooLong(since) });
    if (this.#state.outcome?.type === 'release')
      await this.#context.updateVisibly({ unreachableSince: since });
    return this.#settle(this.#state.outcome);
  }

  readonly #checkUnwanted = () => {
    if (wasCancelled(this.#context)) this.#dispatch({ type: 'cancel' });
    if (this.#sink.limit.aborted) this.#dispatch({ type: 'limit' });
  };

  #dispatch(input: RunInput): void {
    const { phase } = this.#state;
    const { state, effects } = transition(this.#state, input);
    this.#state = state;
    for (const effect of effects) this.#perform(effect);
    if (state.phase === phase) return;
    this.#phase.abort();
    this.#phase = new AbortController();
  }

  #perform(effect: Effect): void {
    const connection = this.#connection;
    if (!connection) return;
    switch (effect) {
      case 'stop':
        connection.stopping = this.#stop(connection);
        break;
      case 'close':
        connection.session.close();
        break;
      case 'boundOutput':
        connection.deadline.boundOutput(this.#context.worker.config.LIMIT_SPOOL_BYTES);
        break;
      case 'ignoreOutput':
        connection.deadline.ignoreOutput();
        break;
    }
  }

  async #stop(connection: Connection): Promise<void> {
    const input: RunInput | undefined = await connection.agent?.stop(this.#context.job.id).then(
      answer => ({ type: 'stopAnswered', ...answer }) as const,
      () => ({ type: 'stopFailed' }) as const,
    );
    if (input && this.#connection === connection) this.#dispatch(input);
  }

  /** Does what the phase is for, until the next phase begins. */
  async #act(agent: AgentClient, connection: Connection): Promise<void> {
    const { job, token } = this.#context;
    const phase = this.#phase.signal;
    const read = (ask: () => AsyncIterableIterator<RunEvent>) =>
      phase.aborted ? undefined : this.#read(ask(), { agent, connection, phase });
    switch (this.#state.phase) {
      case 'recordingIntent': {
        // Committed before the host is first asked: the next worker then knows that it may have been.
        const sent = runSent(placeOf(agent));
        await this.#context.update(sent);
        this.#sink.begun?.(sent.runAt);
        return this.#dispatch({ type: 'intentRecorded' });
      }
      case 'requesting':
        await this.#assertLeasedSinceConfirmed(agent);
        return read(() =>
          agent.run({ id: job.id, token, ...this.#requestFor(agent, connection.session) }),
        );
      case 'following': {
        const stored = await connection.deadline.exclude(() => this.#sink.stored());
        return read(() => agent.follow({ id: job.id, ...stored }));
      }
      default:
        await abortable(connection.stopping ?? Promise.resolve(), this.signal);
    }
  }

  /**
   * The host keeps a fence only until the agent has answered a later ping, so a request needs a look at the job's row
   * after the last one (decision 2).
   */
  async #assertLeasedSinceConfirmed(agent: AgentClient): Promise<void> {
    let since: number;
    do {
      since = agent.confirmedAt;
      await this.#context.assertLeased(since);
    } while (agent.confirmedAt !== since);
  }

  #requestFor(agent: AgentClient, { defaults }: RemoteSession): RunScript {
    const { shell } = agent.hello;
    return typeof this.#request === 'function' ? this.#request({ shell, defaults }) : this.#request;
  }

  /** Reads the run's events until the phase changes. */
  async #read(
    events: AsyncIterableIterator<RunEvent>,
    on: { agent: AgentClient; connection: Connection; phase: AbortSignal },
  ): Promise<void> {
    const { agent, connection, phase } = on;
    try {
      for await (const event of abortableIterator(events, AbortSignal.any([this.signal, phase]))) {
        if (event.type === 'output')
          await connection.deadline.exclude(() => this.#store(event, agent), event.bytes.length);
        else if (event.type === 'running') await this.#resetLosses();
        else if (event.type === 'crowded') return await this.#waitForPlace(phase);
        else this.#dispatch(event);
        if (phase.aborted) return;
      }
    } catch (error) {
      if (phase.aborted && (error === phase.reason || isUnreachable(error))) return;
      throw error;
    }
    throw new WindlassError('remote_connection_failed', { detail: 'The connection was lost.' });
  }

  /** Then the run is requested again: another command of the account may have ended. */
  async #waitForPlace(phase: AbortSignal): Promise<void> {
    const signal = AbortSignal.any([this.signal, phase]);
    await sleep(signal, CROWDED_MS * (0.5 + Math.random()));
    this.signal.throwIfAborted();
  }

  /** A command whose output cannot be stored is stopped, unless another worker may follow it. */
  async #store({ stream, bytes }: OutputEvent, agent: AgentClient): Promise<void> {
    try {
      await this.#sink.take(stream, bytes);
    } catch (error) {
      const mayFollow = error instanceof LeaseRevoked || error instanceof ReleaseJob;
      if (!mayFollow && !isDatabaseDown(error))
        await agent.stop(this.#context.job.id).catch(() => {});
      throw error;
    }
  }

  /** A run that lives is followed without limit, however many workers are lost. */
  async #resetLosses(): Promise<void> {
    if (this.#context.job.consecutiveLosses > 0)
      await this.#context.update({ consecutiveLosses: 0 });
  }

  /** Whether a run without a record was never started, and whether it may be requested again. */
  #comparePlace(agent: AgentClient): Pick<RunState, 'isSamePlace' | 'mayRepeat'> {
    const { job } = this.#context;
    const { runAt } = job;
    const isSamePlace = !wasSentElsewhere(job, placeOf(agent));
    const isRecent = runAt === null || Date.now() - runAt.getTime() < REPEAT_MS;
    return { isSamePlace, mayRepeat: isSamePlace && isRecent };
  }

  /** Returns the end of a run that ended by itself; throws any other outcome. */
  #settle(outcome: RunOutcome | undefined): RunEnd {
    if (outcome?.type === 'ended') return outcome;
    const { limit } = this.#sink;
    if (!outcome) throw new Error('the run has no outcome');
    throw toError(outcome, { isCancelled: this.#state.isCancelled, limit });
  }
}

/** On this boot, with this directory of fences, a run that the host does not know never started. */
const placeOf = ({ hello }: AgentClient) => `${hello.boot} ${hello.fences}`;
