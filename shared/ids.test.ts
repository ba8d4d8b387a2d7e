import { expect, test } from 'vitest';
import { isId, newId } from './ids.ts';

test('isId() accepts ids only', () => {
  for (let i = 0; i < 1_000; i++) expect(isId(newId())).toBe(true);
  expect(isId(newId(0))).toBe(true);
  expect(isId(newId(2 ** 48 - 1))).toBe(true);
  const id = newId();
  for (const other of ['', id.slice(1), `${id}0`, id.toUpperCase(), `8${id.slice(1)}`, `${id}\n`])
    expect([other, isId(other)]).toEqual([other, false]);
  for (const letter of 'ilou') expect(isId(id.slice(0, -1) + letter)).toBe(false);
});

test('ids sort by time and are unique', () => {
  const times = [0, 1, 31, 32, 1_023, 1_024, 1_700_000_000_000, 1_700_000_000_001, 2 ** 47];
  const ids = times.map(time => newId(time));
  expect([...ids].sort()).toEqual(ids);
  expect(newId(1_700_000_000_000).slice(0, 10)).toBe(newId(1_700_000_000_000).slice(0, 10));
  expect(new Set(Array.from({ length: 10_000 }, () => newId(1))).size).toBe(10_000);
});
