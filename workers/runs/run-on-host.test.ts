import { expect, test } from 'vitest';
import { findProgram } from '../../scripts/programs.ts';
import { WindlassError } from '../../shared/errors/errors.ts';
import { processesOf, useAgentHarness } from '../../test/harness/hosts/agent-harness.ts';
import type { LocalExec } from '../../test/harness/hosts/local-exec.ts';
import { makeJobContext } from '../../test/harness/job-context.ts';
import { JobSignals } from '../engine/job-signals.ts';
import type { AgentClient } from '../host-agent/client.ts';
import type { RunEvent } from '../host-agent/protocol/run-event.ts';
import type { RemoteSession } from '../ssh/remote-session.ts';
import { runOnHost } from './run-on-host.ts';

const harness = useAgentHarness();

const SHELL = findProgram('dash') ?? '/bin/sh';
const linkLost = () => new WindlassError('remote_connection_failed');
type Agent = Pick<AgentClient, 'hello' | 'run' | 'follow' | 'ack' | 'stop'>;

/**
 * Runs a command that prints and then sleeps. `first` may break the first connection to its host; `onOutput` is called when
 * its output was stored.
 */
async function runSleeper(given: {
  first?: (agent: AgentClient) => Agent;
  cancel?: AbortSignal;
  limit?: AbortSignal;
  onOutput?: () => void;
  /** While the job's row is looked at. */
  onLook?: (since: number) => Promise<void>;
  /** A run that another worker began. */
  existing?: { host: LocalExec; id: string };
  /** The error of every connection to its host. */
  denied?: WindlassError;
}): Promise<{ host: LocalExec; outcome: Promise<unknown>; connections(): number }> {
  const host = given.existing?.host ?? harness.makeHost(SHELL);
  const never = new AbortController().signal;
  const { limit = new AbortController().signal } = given;
  const signals = new JobSignals(never);
  if (given.cancel?.aborted) signals.cancel();
  given.cancel?.addEventListener('abort', () => signals.cancel());
  let connections = 0;
  const connect = async (): Promise<Agent> => {
    const agent = await harness.connect(host);
    return ++connections === 1 ? (given.first?.(agent) ?? agent) : agent;
  };
  // Jobs of this kind keep their slot while they connect again, however slow the machine is.
  const kind = 'video';
  const id = given.existing?.id ?? harness.newName();
  const runAt = given.existing ? new Date() : null;
  const job = { id, kind, runAt, consecutiveLosses: 0 };
  const context = makeJobContext<'video'>({
    job,
    token: harness.newName(),
    signal: signals.signal,
    cleanupSignal: signals.cleanupSignal,
    assertLeased: async (since = 0) => given.onLook?.(since),
    worker: {
      config: { LIMIT_SPOOL_BYTES: 1 << 20 },
      sessions: {
        find: () => undefined,
        use: async (_sid, _signal, work) => {
          if (given.denied) throw given.denied;
          return work({ agent: connect, close() {} } as unknown as RemoteSession);
        },
      },
    },
  });
  const stored = { stdout: 0, stderr: 0 };
  const outcome = runOnHost(
    context,
    { command: 'echo begun; exec sleep 300' },
    {
      stored: () => stored,
      async take(stream, bytes) {
        stored[stream] += bytes.length;
        given.onOutput?.();
      },
      limit,
    },
  );
  outcome.catch(() => {});
  return { host, outcome, connections: () => connections };
}

const forwarded = (agent: AgentClient): Pick<Agent, 'hello' | 'ack' | 'follow'> => ({
  hello: agent.hello,
  ack: (...given) => agent.ack(...given),
  follow: from => agent.follow(from),
});

/** The link breaks when the agent has said that the run was stopped, and before its end is told. */
function breakBeforeEnd(agent: AgentClient): Agent {
  let stopped: () => void = () => {};
  const told = new Promise<void>(resolve => {
    stopped = resolve;
  });
  async function* untilStopped(events: AsyncIterable<RunEvent>) {
    for await (const event of events) {
      if (event.type !== 'ended') {
        yield event;
        continue;
      }
      await told;
      throw linkLost();
    }
  }
  return {
    ...forwarded(agent),
    run: request => untilStopped(agent.run(request)),
    async stop(id) {
      const answer = await agent.stop(id);
      // The waiting caller gets it before the link breaks.
      setImmediate(stopped);
      return answer;
    },
  };
}

/** The link breaks when the run's end has been told, and before the agent has said that it was stopped. */
function breakBeforeAnswer(agent: AgentClient): Agent {
  let ended: () => void = () => {};
  const told = new Promise<void>(resolve => {
    ended = resolve;
  });
  async function* tellEnd(events: AsyncIterable<RunEvent>) {
    for await (const event of events) {
      if (event.type === 'ended') setImmediate(ended);
      yield event;
    }
  }
  return {
    ...forwarded(agent),
    run: request => tellEnd(agent.run(request)),
    async stop(id) {
      await agent.stop(id);
      await told;
      throw linkLost();
    },
  };
}

test.each([
  ['between the answer and the end', breakBeforeEnd, 2],
  ['between the end and the answer', breakBeforeAnswer, 1],
])(
  'a run that was stopped has not succeeded, though the link was lost %s',
  async (_when, first, connections) => {
    const cancel = new AbortController();
    const run = await runSleeper({ first, cancel: cancel.signal, onOutput: () => cancel.abort() });
    await expect(run.outcome).rejects.toMatchObject({ code: 'cancelled' });
    expect(run.connections()).toBe(connections);
    expect(processesOf(run.host).filter(line => line.includes('sleep 300'))).toEqual([]);

    const limit = new AbortController();
    const reached = new WindlassError('time_limit');
    const limited = await runSleeper({
      first,
      limit: limit.signal,
      onOutput: () => limit.abort(reached),
    });
    await expect(limited.outcome).rejects.toBe(reached);
    expect(limited.connections()).toBe(connections);
  },
);

test('a run is requested only if its row was looked at after the last answered ping', async () => {
  const cancel = new AbortController();
  const looks: number[] = [];
  let client: AgentClient | undefined;
  const run = await runSleeper({
    first: agent => {
      client = agent;
      return agent;
    },
    cancel: cancel.signal,
    onOutput: () => cancel.abort(),
    async onLook(since) {
      looks.push(since);
      expect(since).toBe(client?.confirmedAt);
      if (looks.length === 1) await client?.ping();
    },
  });
  await expect(run.outcome).rejects.toMatchObject({ code: 'cancelled' });
  expect(looks).toEqual([expect.any(Number), client?.confirmedAt]);
  expect(looks[1]).toBeGreaterThan(looks[0] ?? Number.NaN);
});

test('a run that a worker stopped at its limit, and died, has not succeeded for the next one', async () => {
  const host = harness.makeHost(SHELL);
  const agent = await harness.connect(host);
  const id = harness.newName();
  const events = agent.run({ id, token: harness.newName(), command: 'echo begun; exec sleep 300' });
  await events.next();
  expect(await agent.stop(id)).toEqual({ result: 'killed' });
  agent.close();
  const reached = new WindlassError('time_limit');
  const run = await runSleeper({ existing: { host, id }, limit: AbortSignal.abort(reached) });
  await expect(run.outcome).rejects.toBe(reached);
  const cancelled = await runSleeper({ existing: { host, id }, cancel: AbortSignal.abort() });
  await expect(cancelled.outcome).rejects.toMatchObject({ code: 'cancelled' });
});

test('a run that ended by itself has, though it was cancelled or its limit is over when that is read', async () => {
  const host = harness.makeHost(SHELL);
  const agent = await harness.connect(host);
  const id = harness.newName();
  const events = agent.run({ id, token: harness.newName(), command: 'echo begun; exit 3' });
  for await (const _ of events);
  agent.close();
  const limit = AbortSignal.abort(new WindlassError('time_limit'));
  const run = await runSleeper({ existing: { host, id }, limit });
  await expect(run.outcome).resolves.toMatchObject({ code: 3 });
  const cancelled = await runSleeper({ existing: { host, id }, cancel: AbortSignal.abort() });
  await expect(cancelled.outcome).resolves.toMatchObject({ code: 3 });
});

test.each(['remote_authentication_failed', 'session_not_found'] as const)(
  'a run that may live where %s is never told as one that does not',
  async code => {
    const existing = { host: harness.makeHost(SHELL), id: harness.newName() };
    const denied = new WindlassError(code);
    const left = await runSleeper({ existing, denied });
    await expect(left.outcome).rejects.toMatchObject({
      code: 'outcome_unknown',
      extra: { because: code },
    });
    const cancelled = await runSleeper({ existing, denied, cancel: AbortSignal.abort() });
    await expect(cancelled.outcome).rejects.toMatchObject({
      code: 'cancelled',
      message: expect.stringContaining('may run on'),
      extra: { because: code },
    });
  },
);
