import { afterEach, expect, test, vi } from 'vitest';
import { Backoff } from './backoff.ts';

afterEach(() => vi.useRealTimers());

test('each failure doubles the time that it is left alone, up to the longest', () => {
  vi.useFakeTimers();
  const backOff = new Backoff({ firstMs: 60_000, longestMs: 200_000, most: 10 });
  for (const ms of [60_000, 120_000, 200_000, 200_000]) {
    backOff.note('one');
    vi.advanceTimersByTime(ms - 1);
    expect(backOff.names()).toEqual(['one']);
    vi.advanceTimersByTime(1);
    expect(backOff.names()).toEqual([]);
  }
  backOff.forget('one');
  backOff.note('one');
  vi.advanceTimersByTime(60_000);
  expect(backOff.names()).toEqual([]);
});

test('of more than it remembers those are tried again that failed longest ago', () => {
  const backOff = new Backoff({ firstMs: 60_000, longestMs: 60_000, most: 2 });
  for (const name of ['one', 'two', 'one', 'three']) backOff.note(name);
  expect(backOff.names()).toEqual(['one', 'three']);
});
