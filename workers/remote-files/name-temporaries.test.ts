import { expect, test } from 'vitest';
import { nameTemporaries } from './name-temporaries.ts';

const job = { id: 'job', object: 'files/job/secret' };

test('no try has the name of one shortly before, also within one attempt', () => {
  const names = [1, 2].flatMap(epoch =>
    [0, 1, 2].map(tries => nameTemporaries({ ...job, epoch }, tries).temporary),
  );
  expect(new Set(names).size).toBe(6);
});

test('what earlier tries may have left is removed, of this attempt and of those before', () => {
  const { temporary, stale } = nameTemporaries({ ...job, epoch: 3 }, 2);
  expect(stale).not.toContain(temporary);
  for (const [epoch, tries] of [
    [3, 1],
    [3, 0],
    [2, 1],
    [2, 0],
    [1, 0],
  ] as const)
    expect(stale).toContain(nameTemporaries({ ...job, epoch }, tries).temporary);
  expect(nameTemporaries({ ...job, epoch: 1 }, 0).stale).toEqual([]);
  const late = nameTemporaries({ ...job, epoch: 1 }, 9).temporary;
  expect(nameTemporaries({ ...job, epoch: 1 }, 12).stale).toContain(late);
  const next = nameTemporaries({ ...job, epoch: 2 }, 0).stale;
  expect(next).toEqual(expect.arrayContaining([late, 'job-1']));
});

test('it is looked for a bounded number of files', () => {
  expect(nameTemporaries({ ...job, epoch: 10_000 }, 10_000).stale).toHaveLength(83);
});

test('no name tells another one to who does not know the object', () => {
  const first = nameTemporaries({ ...job, epoch: 1 }, 0).temporary;
  const names = ['one', 'two'].flatMap(object =>
    [1, 2].map(tries => nameTemporaries({ ...job, object, epoch: 1 }, tries).temporary),
  );
  expect(new Set([first, ...names]).size).toBe(5);
  for (const name of names) expect(name).toMatch(/^job-1-[0-9a-f]{20}$/);
});
