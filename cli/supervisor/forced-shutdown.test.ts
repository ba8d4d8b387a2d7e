import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { listenForForcedShutdown } from './forced-shutdown.ts';

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
