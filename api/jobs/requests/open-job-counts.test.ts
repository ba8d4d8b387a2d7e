import { expect, test } from 'vitest';
import { OpenJobCounts } from './open-job-counts.ts';

/** Starts jobs as requests do, beside as many as are open; how many were started, and how often the open ones were counted. */
function startAll(limit: number, open = 0): { started: number; counts: number } {
  const known = new OpenJobCounts(limit);
  let counts = 0;
  for (let started = 0; ; started++) {
    const most = known.nextLimit('ann');
    if (most > 0) {
      counts++;
      if (open + started >= most) return { started, counts };
      known.counted('ann', open + started);
    }
  }
}

test('as many jobs are started as the limit allows', () => {
  for (const limit of [1, 2, 3, 10, 10_000]) expect(startAll(limit).started).toBe(limit);
  expect(startAll(10, 7).started).toBe(3);
  expect(startAll(10, 10).started).toBe(0);
});

test('far from the limit the open ones are counted seldom, near it at every start', () => {
  expect(startAll(10_000).counts).toBeLessThan(250);
  const known = new OpenJobCounts(100);
  known.counted('ann', 0);
  expect(known.nextLimit('ann')).toBe(100);
});

test('without a limit none are counted', () => {
  expect(new OpenJobCounts(0).nextLimit('ann')).toBe(0);
});

test('users are counted apart', () => {
  const known = new OpenJobCounts(1_000);
  known.counted('ann', 0);
  expect([known.nextLimit('ann'), known.nextLimit('bob')]).toEqual([0, 1_000]);
});
