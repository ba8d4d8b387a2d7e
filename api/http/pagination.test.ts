import { expect, test } from 'vitest';
import { toPage } from './pagination.ts';

test('a page says where the next one begins, and only where there is one', () => {
  const rows = ['a', 'b', 'c'];
  expect(toPage(rows, 2, row => row)).toEqual({ items: ['a', 'b'], next: 'b' });
  expect(toPage(rows, 3, row => row)).toEqual({ items: rows, next: null });
  expect(toPage([], 3, String)).toEqual({ items: [], next: null });
});
