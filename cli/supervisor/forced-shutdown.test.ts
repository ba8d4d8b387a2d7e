import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { listenForForcedShutdown } from './forced-shutdown.ts';
import { chooseRestartBackoff } from './restart-backoff.ts';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

test('a second request forces the shutdown, one that arrives twice does not', () => {
  const stop = new AbortController();
  const source = new EventEmitter();
  const forceShutdown = listenForForcedShutdown(stop.signal, source);
  source.emit('SIGINT');
  expect(forceShutdown.aborted).toBe(false);
  stop.abort();
  vi.advanceTimersByTime(100);
  source.emit('SIGINT');
  expect(forceShutdown.aborted).toBe(false);
  vi.advanceTimersByTime(500);
  source.emit('SIGTERM');
  expect(forceShutdown.aborted).toBe(true);
});

test('the backoff is short at first, then doubles up to 20 s', () => {
  const delays = [0, 1, 2, 3, 4, 5, 6, 7, 8, 1000].map(chooseRestartBackoff);
  expect(delays).toEqual([100, 100, 500, 1000, 2000, 4000, 8000, 16000, 20000, 20000]);
});
