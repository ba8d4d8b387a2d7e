import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { WindlassError } from '../../shared/errors/errors.ts';
import { NoAnswer } from '../host-agent/protocol/no-answer.ts';
import { type NextTry, Outage } from './outage.ts';

const LOST = new WindlassError('remote_connection_failed');
const SILENT = new WindlassError('remote_connection_failed', { cause: new NoAnswer('silent') });

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance', 'Date'] }));
afterEach(() => void vi.useRealTimers());

/** So many ms pass, the host connects, its user has logged in anew for that, it fails, or it does not answer. */
type Step = number | 'connects' | 'logs in' | 'fails' | 'is silent';

/** What follows the last step. */
function follow(outage: Outage, steps: Step[]): NextTry | undefined {
  let next: NextTry | undefined;
  for (const step of steps) {
    if (typeof step === 'number') vi.advanceTimersByTime(step);
    else if (step === 'connects') outage.connected();
    else if (step === 'logs in') outage.connected(performance.now() - 10);
    else next = outage.failed(step === 'fails' ? LOST : SILENT);
  }
  return next;
}

const begin = ({ unreachableMs = 0, kind = 'command' } = {}) =>
  new Outage({
    kind,
    unreachableSince: unreachableMs > 0 ? new Date(Date.now() - unreachableMs) : null,
  });

test.each<[what: string, next: string, steps: Step[], job?: Parameters<typeof begin>[0]]>([
  ['a first failure', 'try', ['fails']],
  ['4 s without a connection', 'try', ['fails', 4_000, 'fails']],
  ['more', 'yield', ['fails', 4_001, 'fails']],
  ['more, in a job that would lose its work', 'try', ['fails', 60_000, 'fails'], { kind: 'video' }],
  ['a minute, in such a job', 'throw', ['fails', 60_001, 'fails'], { kind: 'video' }],
  ['a minute, with earlier attempts', 'throw', [3_001, 'fails'], { unreachableMs: 57_000 }],
  ['a connection of 5 s', 'yield', [3_000, 'connects', 5_000, 'fails']],
  ['a longer one', 'try', [3_000, 'connects', 5_001, 'fails']],
  [
    'a longer one, after earlier attempts',
    'try',
    ['connects', 5_001, 'fails'],
    { unreachableMs: 90_000 },
  ],
  ['a connection without an answer', 'yield', ['connects', 'is silent']],
  ['20 s without an answer', 'yield', ['connects', 20_000, 'is silent']],
  [
    'a minute since the host was first silent',
    'throw',
    ['connects', 20_000, 'is silent', 'connects', 50_000, 'is silent', 11_000, 'fails'],
    { kind: 'video' },
  ],
  [
    'a host that was unreachable and is silent',
    'throw',
    ['connects', 20_000, 'is silent'],
    { unreachableMs: 45_000 },
  ],
  [
    'one that was unreachable and answered',
    'yield',
    ['connects', 200_001, 'is silent'],
    { unreachableMs: 90_000 },
  ],
  [
    'a silent host whose user logged in',
    'yield',
    ['logs in', 'is silent'],
    { unreachableMs: 90_000 },
  ],
])('after %s: %s', (_what, next, steps, job) => {
  const decided = follow(begin(job), steps);
  expect(typeof decided === 'object' ? 'try' : decided).toBe(next);
});

test('a login from before the outage does not end it', () => {
  const outage = begin({ unreachableMs: 90_000 });
  outage.connected(performance.now() - 100_000);
  expect(outage.failed(SILENT)).toBe('throw');
});

test('pauses double up to 4 s, and begin anew after a stable connection', () => {
  const random = vi.spyOn(Math, 'random').mockReturnValue(0.5);
  const outage = begin({ kind: 'video' });
  const fail = (...steps: Step[]) => follow(outage, [...steps, 'fails']);
  const pauses = [fail(), fail(), fail(), fail(), fail(), fail(), fail('connects', 5_001), fail()];
  const ms = [250, 500, 1_000, 2_000, 4_000, 4_000, 250, 500];
  expect(pauses).toEqual(ms.map(pauseMs => ({ pauseMs })));
  random.mockRestore();
});

test('tells since when the host has been unreachable, and whether it is', () => {
  const outage = begin({ unreachableMs: 10_000 });
  follow(outage, ['fails', 1_000, 'fails']);
  expect(Date.now() - outage.began.getTime()).toBe(11_000);
  expect([outage.failures, outage.isHostUnreachable]).toEqual([2, true]);
  follow(outage, ['connects', 6_000, 'fails', 1_000]);
  expect(Date.now() - outage.began.getTime()).toBe(1_000);
  expect([outage.failures, outage.isHostUnreachable]).toEqual([1, false]);
});
