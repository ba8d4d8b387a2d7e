import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Demand } from './demand.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test('more attempts are prepared while runs follow one another, and no longer after a pause', () => {
  const told: number[] = [];
  const demand = new Demand(ahead => told.push(ahead));
  for (let run = 0; run < 10; run++) {
    demand.add();
    vi.advanceTimersByTime(900);
  }
  expect(told).toEqual([3]);
  vi.advanceTimersByTime(100);
  expect(told).toEqual([3, 1]);
  for (let run = 0; run < 10; run++) {
    demand.add();
    vi.advanceTimersByTime(1_000);
  }
  expect(told).toEqual([3, 1]);
  for (let run = 0; run < 4; run++) demand.add();
  demand.close();
  vi.advanceTimersByTime(10_000);
  expect(told).toEqual([3, 1, 3]);
});
