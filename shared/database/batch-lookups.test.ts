import { expect, test } from 'vitest';
import { batchLookups } from './batch-lookups.ts';

test('keys that arrive during a query share the next one', async () => {
  const asked: number[][] = [];
  let answer = () => {};
  const look = batchLookups(async (keys: number[]) => {
    asked.push(keys);
    await new Promise<void>(resolve => {
      answer = resolve;
    });
    return keys.map(key => key * 10);
  });
  const first = look(1);
  const others = Array.from({ length: 150 }, (_, i) => look(i + 2));
  expect(asked).toEqual([[1]]);
  answer();
  expect(await first).toBe(10);
  answer();
  expect(await others[0]).toBe(20);
  answer();
  expect(await Promise.all(others)).toEqual(Array.from({ length: 150 }, (_, i) => (i + 2) * 10));
  expect(asked.map(keys => keys.length)).toEqual([1, 100, 50]);
});

test('equal keys that wait together are asked for once, and for those of a query that runs again', async () => {
  const asked: { id: number }[][] = [];
  const look = batchLookups(async (keys: { id: number }[]) => {
    asked.push(keys);
    await null;
    return keys.map(({ id }) => id * 10);
  });
  const found = await Promise.all([1, 1, 2, 1, 2].map(id => look({ id })));
  expect(found).toEqual([10, 10, 20, 10, 20]);
  expect(asked).toEqual([[{ id: 1 }], [{ id: 1 }, { id: 2 }]]);
});

test('a failed query rejects its batch only', async () => {
  let fails = true;
  const look = batchLookups(async (keys: number[]) => {
    await null;
    if (fails) throw new Error('away');
    return keys;
  });
  const results = await Promise.allSettled([look(1), look(2).catch(error => error.message)]);
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
  fails = false;
  expect(await look(3)).toBe(3);
});
