import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { WindlassError } from '../../shared/errors/errors.ts';
import { LoginFloods } from './login-floods.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'], now: 0 }));
afterEach(() => void vi.useRealTimers());

const tooMany = new WindlassError('too_many_requests');
const flood = { code: 'too_many_requests', headers: { 'Retry-After': '2' } };

test('twenty refusals in a second stop an address', () => {
  const floods = new LoginFloods();
  for (let n = 0; n < 20; n++) {
    expect(floods.refusal('192.0.2.1')).toBeUndefined();
    floods.count('192.0.2.1', tooMany);
  }
  expect(floods.refusal('192.0.2.1')).toMatchObject(flood);
  expect(floods.refusal('192.0.2.2')).toBeUndefined();
  vi.advanceTimersByTime(1_999);
  expect(floods.refusal('192.0.2.1')).toMatchObject(flood);
  vi.advanceTimersByTime(1);
  expect(floods.refusal('192.0.2.1')).toBeUndefined();
});

test('a flood is refused as long as it goes on, and one that becomes a trickle is let in', () => {
  const floods = new LoginFloods();
  const attempt = () => {
    const refusal = floods.refusal('192.0.2.1');
    if (!refusal) floods.count('192.0.2.1', tooMany);
    return refusal;
  };
  const letIn = (perSecond: number) => {
    const refusals = Array.from({ length: perSecond }, attempt);
    vi.advanceTimersByTime(1_000);
    return refusals.filter(refusal => !refusal).length;
  };
  expect([100, 100, 20, 100, 19, 19, 19].map(letIn)).toEqual([20, 0, 0, 0, 0, 19, 19]);
});

test('what else ends an attempt does not count', () => {
  const floods = new LoginFloods();
  for (let n = 0; n < 100; n++)
    for (const error of [new WindlassError('unauthorized'), new Error('away')])
      floods.count('192.0.2.1', error);
  expect(floods.refusal('192.0.2.1')).toBeUndefined();
});
