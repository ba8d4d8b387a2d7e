import { expect, test } from 'vitest';
import { compareParts, MAX_LISTED } from './compare-parts.ts';

const at = (...tuples: [number, number][]) => tuples.map(([fid, pid]) => ({ fid, pid }));

test('compares stored and sent parts of each file', () => {
  const none = { missing: [], excess: [], truncated: false };
  expect(compareParts([2, 1], at([0, 0], [0, 1], [1, 0]))).toEqual(none);
  expect(compareParts([2, 2], at([0, 1], [1, 0]))).toEqual({
    ...none,
    missing: [
      [0, 0],
      [1, 1],
    ],
  });
  expect(compareParts([1], at([0, 0], [0, 1], [2, 0]))).toEqual({
    ...none,
    excess: [
      [0, 1],
      [2, 0],
    ],
  });
  expect(compareParts([3], at([0, 0], [0, 3]))).toEqual({
    ...none,
    missing: [
      [0, 1],
      [0, 2],
    ],
    excess: [[0, 3]],
  });
});

test('stops when a list is full, whatever counts the client sends', () => {
  const stored = at(...Array.from({ length: MAX_LISTED + 2 }, (_, i): [number, number] => [0, i]));
  const beyond = compareParts([1], stored);
  expect([beyond.excess.length, beyond.truncated]).toEqual([MAX_LISTED, true]);
  const exact = compareParts([MAX_LISTED], []);
  expect([exact.missing.length, exact.truncated]).toEqual([MAX_LISTED, false]);
  const endless = Array(1_000).fill(Number.MAX_SAFE_INTEGER);
  const { missing, truncated } = compareParts(endless, at([0, 0], [0, 2]));
  expect([missing.length, missing[0], missing[1], truncated]).toEqual([
    MAX_LISTED,
    [0, 1],
    [0, 3],
    true,
  ]);
});
