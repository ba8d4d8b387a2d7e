import { afterEach, expect, test, vi } from 'vitest';
import { Backoff } from './backoff.ts';

afterEach(() => vi.useRealTimers());

test('each failure doubles the pause of its key, up to the longest', () => {
  vi.useFakeTimers();
  const backoff = new Backoff({ firstMs: 60_000, longestMs: 200_000, most: 10 });
  for (const ms of [60_000, 120_000, 200_000, 200_000]) {
    backoff.fail('one');
    vi.advanceTimersByTime(ms - 1);
    expect(backoff.paused()).toEqual(['one']);
    vi.advanceTimersByTime(1);
    expect(backoff.paused()).toEqual([]);
  }
  backoff.reset('one');
  backoff.fail('one');
  vi.advanceTimersByTime(60_000);
  expect(backoff.paused()).toEqual([]);
});

test('beyond `most` keys, the ones that failed longest ago start anew', () => {
  const backoff = new Backoff({ firstMs: 60_000, longestMs: 60_000, most: 2 });
  for (const name of ['one', 'two', 'one', 'three']) backoff.fail(name);
  expect(backoff.paused()).toEqual(['one', 'three']);
});
