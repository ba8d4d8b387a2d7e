import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { listenForForceQuit } from './force-quit.ts';
import { chooseRestartDelay } from './restart-delay.ts';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

test('a second request forces the quit, the same one passed on twice does not', () => {
  const stop = new AbortController();
  const source = new EventEmitter();
  const forceQuit = listenForForceQuit(stop.signal, source);
  source.emit('SIGINT');
  expect(forceQuit.aborted).toBe(false);
  stop.abort();
  vi.advanceTimersByTime(100);
  source.emit('SIGINT');
  expect(forceQuit.aborted).toBe(false);
  vi.advanceTimersByTime(500);
  source.emit('SIGTERM');
  expect(forceQuit.aborted).toBe(true);
});

test('restarts are at once at first, then ever rarer, never rarer than 20 s', () => {
  const delays = [0, 1, 2, 3, 4, 5, 6, 7, 8, 1000].map(chooseRestartDelay);
  expect(delays).toEqual([100, 100, 500, 1000, 2000, 4000, 8000, 16000, 20000, 20000]);
});
