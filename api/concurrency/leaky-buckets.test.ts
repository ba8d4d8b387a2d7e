import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { LeakyBuckets } from './leaky-buckets.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'], now: 0 }));
afterEach(() => void vi.useRealTimers());

test('each party has so many at once, and one more in each interval', () => {
  const buckets = new LeakyBuckets({ atOnce: 20, seconds: 3 });
  const count = (party: string, times: number) =>
    Array.from({ length: times }, () => buckets.add(party)).filter(wait => wait === 0).length;
  expect(count('a', 60)).toBe(20);
  expect(buckets.add('a')).toBe(3);
  expect(count('b', 60)).toBe(20);
  vi.advanceTimersByTime(2_500);
  expect(buckets.add('a')).toBe(1);
  vi.advanceTimersByTime(500);
  expect(count('a', 60)).toBe(1);
  vi.advanceTimersByTime(30_000);
  expect(count('a', 60)).toBe(10);
  vi.advanceTimersByTime(3_600_000);
  expect(count('a', 60)).toBe(20);
});
