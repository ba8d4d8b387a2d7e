import { expect, test } from 'vitest';
import { toPage } from './pagination.ts';

test('a page has the cursor of the next one, if any', () => {
  const rows = ['a', 'b', 'c'];
  expect(toPage(rows, 2, row => row)).toEqual({ items: ['a', 'b'], next: 'b' });
  expect(toPage(rows, 3, row => row)).toEqual({ items: rows, next: null });
  expect(toPage([], 3, String)).toEqual({ items: [], next: null });
});
