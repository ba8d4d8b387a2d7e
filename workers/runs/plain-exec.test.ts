import { PassThrough } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import type { JobRow } from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors/errors.ts';
import { makeJobContext } from '../../test/harness/job-context.ts';
import { LeaseRevoked } from '../engine/claim.ts';
import { causeOf, JobSignals } from '../engine/job-signals.ts';
import { ReleaseJob } from '../engine/release-job.ts';
import type { RemoteSession } from '../ssh/remote-session.ts';
import { runPlainExec } from './plain-exec.ts';

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

/** A command over a channel that the test ends; it dies of TERM. */
class Channel {
  readonly stdin = new PassThrough();
  readonly stdout = new PassThrough();
  readonly stderr = new PassThrough();
  readonly signals: string[] = [];
  #close: (end: { code: number | null; signal: string | null }) => void = () => {};
  readonly closed = new Promise<{ code: number | null; signal: string | null }>(resolve => {
    this.#close = resolve;
  });

  signal(name: string): void {
    this.signals.push(name);
    this.end(null, name);
  }

  end(code: number | null, signal: string | null = null): void {
    this.stdout.end();
    this.stderr.end();
    this.#close({ code, signal });
  }

  destroy(): void {
    this.end(null);
  }
}

type Exec = (before: () => Promise<void>) => Promise<Channel>;

/** Starts a command; `exec` opens its channel. The outcome is what an attempt takes for the cause. */
function begin(given: { exec?: Exec; job?: Partial<JobRow>; begun?: () => void } = {}) {
  const stop = new AbortController();
  const signals = new JobSignals(stop.signal);
  const limit = new AbortController();
  const channel = new Channel();
  let started = () => {};
  const running = new Promise<void>(resolve => {
    started = resolve;
  });
  const open: Exec = async before => {
    await before();
    started();
    return channel;
  };
  const { exec = open } = given;
  const session = {
    defaults: { startup: 'once', env: {} },
    exec: (_command: string, _signal: AbortSignal, before: () => Promise<void>) => exec(before),
  };
  const context = makeJobContext<'command'>({
    job: { kind: 'command', queue: 'remote', ...given.job },
    payload: { command: 'true' },
    signal: signals.signal,
    cleanupSignal: signals.cleanupSignal,
    pin: () => signals.pin(),
    unpin: () => signals.unpin(),
    worker: {
      sessions: {
        find: () => undefined,
        use: (_sid, _signal, work) => work(session as unknown as RemoteSession),
      },
    },
  });
  const sink = { take: async () => {}, limit: limit.signal, begun: given.begun };
  const outcome = runPlainExec(context, sink).catch((error: unknown) => {
    throw causeOf(error, signals);
  });
  outcome.catch(() => {});
  return { stop, signals, limit, channel, running, job: context.job, outcome };
}

test('a worker that stops waits for the command, whose exit status counts', async () => {
  const { stop, channel, running, outcome } = begin();
  await running;
  stop.abort();
  channel.end(3);
  expect(await outcome).toBe(3);
  expect(channel.signals).toEqual([]);
});

test('a signal counts by its number, and one that the host does not name as ssh counts it', async () => {
  // As ssh2 tells what sshd sends.
  for (const [signal, status] of [
    ['SIGSEGV', 139],
    ['SIGBUS', 135],
    ['SIGSIG@openssh.com', 255],
  ] as const) {
    const { channel, running, outcome } = begin();
    await running;
    channel.end(null, signal);
    expect([signal, await outcome]).toEqual([signal, status]);
  }
});

test('a cancel ends the command, also while the worker stops', async () => {
  const { stop, signals, channel, running, outcome } = begin();
  await running;
  stop.abort();
  signals.cancel();
  await expect(outcome).rejects.toMatchObject({ code: 'cancelled', message: 'Cancelled.' });
  expect(channel.signals).toEqual(['TERM']);
});

test('a limit ends the command, also while the worker stops', async () => {
  const { stop, limit, channel, running, outcome } = begin();
  await running;
  stop.abort();
  const reached = new WindlassError('time_limit');
  limit.abort(reached);
  await expect(outcome).rejects.toBe(reached);
  expect(channel.signals).toEqual(['TERM']);
});

test('a lost link while the worker stops leaves the outcome unknown, and is not run again', async () => {
  const { stop, channel, running, job, outcome } = begin();
  await running;
  stop.abort();
  channel.end(null);
  await expect(outcome).rejects.toMatchObject({ code: 'outcome_unknown' });
  expect(job.runAt).not.toBeNull();
  await expect(
    begin({ job: { runAt: new Date(), runRemoved: true } }).outcome,
  ).rejects.toMatchObject({ code: 'outcome_unknown' });
});

test('a worker that lost the lease leaves the command to the next one, cancelled or not', async () => {
  for (const isCancelled of [false, true]) {
    const { signals, channel, running, outcome } = begin();
    await running;
    signals.revokeLease('id');
    if (isCancelled) signals.cancel();
    await expect(outcome).rejects.toBeInstanceOf(LeaseRevoked);
    expect(channel.signals).toEqual([]);
  }
});

test('a command that was not sent is released when the worker stops, and may run elsewhere', async () => {
  const refused = new WindlassError('remote_connection_failed');
  const { stop, job, outcome } = begin({
    exec: async before => {
      await before();
      stop.abort();
      throw refused;
    },
  });
  await expect(outcome).rejects.toBeInstanceOf(ReleaseJob);
  expect(job).toMatchObject({ runAt: null, runRemoved: false });
});

test('its time runs from when its channel is open, which may have been waited for', async () => {
  const told: string[] = [];
  const channel = new Channel();
  const exec: Exec = async before => {
    await before();
    told.push('refused');
    await before();
    told.push('open');
    return channel;
  };
  const { outcome } = begin({ exec, begun: () => told.push('begun') });
  channel.end(0);
  expect(await outcome).toBe(0);
  expect(told).toEqual(['refused', 'open', 'begun']);
});

test('nothing holds what a command needed when it has ended', async () => {
  const runOne = async () => {
    const { channel, running, outcome } = begin();
    await running;
    channel.end(0);
    await outcome;
    return new WeakRef(channel);
  };
  const channel = await runOne();
  for (let tries = 0; tries < 20 && channel.deref(); tries++) {
    await setImmediate();
    collectGarbage();
  }
  expect(channel.deref()).toBeUndefined();
});
