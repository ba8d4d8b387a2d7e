import { expect, test } from 'vitest';
import { WindlassError } from '../../shared/errors/errors.ts';
import { LeaseRevoked } from './claim.ts';
import { causeOf, isCancelled, JobSignals } from './job-signals.ts';
import { ReleaseJob } from './release-job.ts';

function begin() {
  const stop = new AbortController();
  return { stop, signals: new JobSignals(stop.signal) };
}

/** What aborted both signals, by its name or code. */
const reasonsOf = ({ signal, cleanupSignal }: JobSignals) =>
  [signal.reason, cleanupSignal.reason].map(reason =>
    isCancelled(reason) ? 'cancelled' : reason?.name,
  );

type Step = 'cancel' | 'stop' | 'revoke' | 'pin' | 'unpin';

test.each<[Step[], [signal: string | undefined, cleanupSignal: string | undefined]]>([
  [[], [undefined, undefined]],
  [['cancel'], ['cancelled', undefined]],
  [['stop'], ['ReleaseJob', 'ReleaseJob']],
  [['revoke'], ['LeaseRevoked', 'LeaseRevoked']],
  [
    ['cancel', 'stop'],
    ['cancelled', 'ReleaseJob'],
  ],
  [
    ['stop', 'cancel'],
    ['ReleaseJob', 'ReleaseJob'],
  ],
  [
    ['cancel', 'revoke'],
    ['cancelled', 'LeaseRevoked'],
  ],
  [
    ['stop', 'revoke'],
    ['ReleaseJob', 'ReleaseJob'],
  ],
  [
    ['pin', 'stop'],
    [undefined, undefined],
  ],
  [
    ['pin', 'stop', 'cancel'],
    ['cancelled', undefined],
  ],
  [
    ['pin', 'stop', 'revoke'],
    ['LeaseRevoked', 'LeaseRevoked'],
  ],
  [
    ['pin', 'stop', 'unpin'],
    ['ReleaseJob', 'ReleaseJob'],
  ],
  [
    ['stop', 'pin'],
    ['ReleaseJob', 'ReleaseJob'],
  ],
])('after %j the first reason stays', (steps, expected) => {
  const { stop, signals } = begin();
  for (const step of steps) {
    if (step === 'stop') stop.abort();
    else if (step === 'revoke') signals.revokeLease('id');
    else signals[step]();
  }
  expect(reasonsOf(signals)).toEqual(expected);
});

test('a worker that stops already aborts at once, and one that stops later finds a closed job untouched', () => {
  expect(reasonsOf(new JobSignals(AbortSignal.abort()))).toEqual(['ReleaseJob', 'ReleaseJob']);
  const { stop, signals } = begin();
  signals.close();
  stop.abort();
  expect(reasonsOf(signals)).toEqual([undefined, undefined]);
});

test('what fails after the abort failed because of it, unless the handler says more', () => {
  const broken = new Error('broken');
  const { stop, signals } = begin();
  expect(causeOf(broken, signals)).toBe(broken);
  signals.cancel();
  expect(causeOf(broken, signals)).toBe(signals.signal.reason);
  const detailed = new WindlassError('cancelled', { detail: 'it may run on' });
  const released = new ReleaseJob('the host cannot be reached');
  expect(causeOf(detailed, signals)).toBe(detailed);
  expect(causeOf(released, signals)).toBe(released);
  stop.abort();
  expect(causeOf(broken, signals)).toBe(signals.signal.reason);
  expect(causeOf(signals.cleanupSignal.reason, signals)).toBeInstanceOf(ReleaseJob);
});

test('a revoked lease outweighs every other reason', () => {
  const { signals } = begin();
  signals.cancel();
  signals.revokeLease('id');
  for (const error of [new Error('broken'), new WindlassError('cancelled'), new ReleaseJob('why')])
    expect(causeOf(error, signals)).toBeInstanceOf(LeaseRevoked);
});
