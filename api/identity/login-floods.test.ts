import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { WindlassError } from '../../shared/errors/errors.ts';
import { LoginFloods } from './login-floods.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'], now: 0 }));
afterEach(() => void vi.useRealTimers());

const tooMany = new WindlassError('too_many_requests');
const flood = { code: 'too_many_requests', headers: { 'Retry-After': '1' } };

test('twenty refusals in a second stop an address until it ends', () => {
  const floods = new LoginFloods();
  for (let n = 0; n < 20; n++) {
    expect(floods.refusal('192.0.2.1')).toBeUndefined();
    floods.count('192.0.2.1', tooMany);
  }
  expect(floods.refusal('192.0.2.1')).toMatchObject(flood);
  expect(floods.refusal('192.0.2.2')).toBeUndefined();
  vi.advanceTimersByTime(1_000);
  expect(floods.refusal('192.0.2.1')).toBeUndefined();
});

test('what else ends an attempt does not count', () => {
  const floods = new LoginFloods();
  for (let n = 0; n < 100; n++)
    for (const error of [new WindlassError('unauthorized'), new Error('away')])
      floods.count('192.0.2.1', error);
  expect(floods.refusal('192.0.2.1')).toBeUndefined();
});
