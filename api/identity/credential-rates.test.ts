import { afterEach, expect, test, vi } from 'vitest';
import { CredentialRates } from './credential-rates.ts';

afterEach(() => void vi.useRealTimers());

test('a password changes 20 times at once, and then once in 3 seconds, for each user', () => {
  vi.useFakeTimers({ toFake: ['performance'], now: 0 });
  const rates = new CredentialRates();
  for (let n = 0; n < 20; n++) rates.countPassword('a');
  expect(() => rates.countPassword('a')).toThrow(
    expect.objectContaining({ code: 'too_many_requests', headers: { 'Retry-After': '3' } }),
  );
  rates.countPassword('b');
  vi.advanceTimersByTime(3_000);
  rates.countPassword('a');
  expect(() => rates.countPassword('a')).toThrow();
});
