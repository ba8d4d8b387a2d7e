import { expect, test } from 'vitest';
import { afterLackOfMemory } from './lack-of-memory.ts';
import { LARGEST_SHARE, USUAL_SHARE } from './protocol.ts';

test('DuckDB gets more with one thread, and less where the child took too much', () => {
  const first = { threads: 2 } as const;
  const most = afterLackOfMemory('refused', first);
  expect(most).toEqual({ threads: 1, share: LARGEST_SHARE });
  const least = afterLackOfMemory('exceeded', first);
  expect(least).toEqual({ threads: 1, share: USUAL_SHARE });
  expect(afterLackOfMemory('exceeded', { threads: 1, share: LARGEST_SHARE })).toEqual(least);
  expect(afterLackOfMemory('refused', { threads: 1, share: USUAL_SHARE })).toEqual(most);
});

test('an attempt that would fail as well is not made', () => {
  expect(afterLackOfMemory('most', { threads: 2 })).toBeUndefined();
  expect(afterLackOfMemory('exceeded', { threads: 1, share: USUAL_SHARE })).toBeUndefined();
});
