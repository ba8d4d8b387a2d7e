import { expect, test, vi } from 'vitest';
import type { WindlassError } from '../../shared/errors/errors.ts';
import { EventRates } from './event-rates.ts';

test('a user has so many bytes of events in a minute, whatever others send', () => {
  const rates = new EventRates(100_000);
  for (let n = 0; n < 10; n++) rates.count('one', 9_700);
  expect(() => rates.count('one', 9_700)).toThrow('More than 100000 bytes of events in a minute.');
  rates.count('another', 9_700);
});

test('under a limit that one event exceeds there is room for one, and more when the answer says', () => {
  vi.useFakeTimers();
  try {
    const rates = new EventRates(1_000);
    rates.count('one', 8_000);
    let refusal: unknown;
    try {
      rates.count('one', 8_000);
    } catch (error) {
      refusal = error;
    }
    const wait = Number((refusal as WindlassError).headers?.['Retry-After']);
    expect(wait).toBeGreaterThan(60);
    vi.advanceTimersByTime(wait * 1_000);
    rates.count('one', 8_000);
    expect(() => rates.count('one', 8_000)).toThrow('More than 1000 bytes');
  } finally {
    vi.useRealTimers();
  }
});

test('0 is no limit', () => {
  const rates = new EventRates(0);
  for (let n = 0; n < 1_000; n++) rates.count('one', 8_000);
});
