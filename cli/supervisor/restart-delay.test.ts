import { expect, test } from 'vitest';
import { addEnd, chooseRestartBackoff, restartDelay } from './restart-delay.ts';

/** The delays after ends one after another: how long the process ran, and whether it was ready. */
function delaysAfter(ends: { wasReady: boolean; ranMs: number }[]): number[] {
  let history = { unreadyStarts: 0, earlyEnds: 0 };
  return ends.map(end => {
    history = addEnd(history, end);
    return restartDelay(history);
  });
}
const unready = { wasReady: false, ranMs: 60_000 };
const early = { wasReady: true, ranMs: 4_999 };
const late = { wasReady: true, ranMs: 5_000 };

test('the backoff is short at first, then doubles up to 20 s', () => {
  const delays = [0, 1, 2, 3, 4, 5, 6, 7, 8, 1000].map(chooseRestartBackoff);
  expect(delays).toEqual([100, 100, 500, 1000, 2000, 4000, 8000, 16000, 20000, 20000]);
});

test('a process that is never ready is started ever later', () => {
  expect(delaysAfter(Array(4).fill(unready))).toEqual([100, 100, 500, 1000]);
});

test('one that was ready is back within a second, however often it ends soon', () => {
  expect(delaysAfter(Array(5).fill(early))).toEqual([100, 500, 1000, 1000, 1000]);
  expect(delaysAfter([early, early, late, early])).toEqual([100, 500, 100, 100]);
});

test('to have been ready ends the longer delays, and a start that fails keeps what ended soon', () => {
  expect(delaysAfter([...Array(5).fill(unready), late])).toEqual([100, 100, 500, 1000, 2000, 100]);
  expect(delaysAfter([early, early, unready, early])).toEqual([100, 500, 100, 1000]);
});
