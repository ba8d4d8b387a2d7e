import { expect, test } from 'vitest';
import { nameTemporaries } from './name-temporaries.ts';

test('no try has the name of one shortly before, also within one attempt', () => {
  const names = [1, 2].flatMap(epoch =>
    [0, 1, 2].map(tries => nameTemporaries({ id: 'job', epoch }, tries).temporary),
  );
  expect(new Set(names).size).toBe(6);
});

test('what earlier tries may have left is removed, of this attempt and of those before', () => {
  const { temporary, stale } = nameTemporaries({ id: 'job', epoch: 3 }, 2);
  expect(stale).not.toContain(temporary);
  for (const [epoch, tries] of [
    [3, 1],
    [3, 0],
    [2, 1],
    [2, 0],
    [1, 0],
  ] as const)
    expect(stale).toContain(nameTemporaries({ id: 'job', epoch }, tries).temporary);
  expect(nameTemporaries({ id: 'job', epoch: 1 }, 0).stale).toEqual([]);
  const late = nameTemporaries({ id: 'job', epoch: 1 }, 9).temporary;
  expect(nameTemporaries({ id: 'job', epoch: 1 }, 12).stale).toContain(late);
  const next = nameTemporaries({ id: 'job', epoch: 2 }, 0).stale;
  expect(next).toEqual(expect.arrayContaining([late, 'job-1']));
});

test('it is looked for a bounded number of files', () => {
  expect(nameTemporaries({ id: 'job', epoch: 10_000 }, 10_000).stale).toHaveLength(83);
});
