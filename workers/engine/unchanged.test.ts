import { expect, test } from 'vitest';
import { Unchanged } from './unchanged.ts';

const one = (version: string) => [{ id: 'a', version }];

test('what stays the same is found by the last of so many looks, and by each after it', () => {
  const unchanged = new Unchanged(3);
  const found = [1, 2, 3, 4].map(() => unchanged.look(one('v')).length);
  expect(found).toEqual([0, 0, 1, 1]);
});

test.each([
  [
    'another version',
    (unchanged: Unchanged<{ id: string; version: string }>) => unchanged.look(one('w')),
  ],
  [
    'a look that does not find it',
    (unchanged: Unchanged<{ id: string; version: string }>) => unchanged.look([]),
  ],
  [
    'a gap in the looks',
    (unchanged: Unchanged<{ id: string; version: string }>) => unchanged.forget(),
  ],
])('%s makes it begin again', (_what, happen) => {
  const unchanged = new Unchanged(2);
  unchanged.look(one('v'));
  happen(unchanged);
  expect(unchanged.look(one('v'))).toEqual([]);
  expect(unchanged.look(one('v'))).toEqual(one('v'));
});
