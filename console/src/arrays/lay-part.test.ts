import { expect, test } from 'vitest';
import { firstOf, layPart } from './lay-part.ts';

test('a part begins where its ranges do', () => {
  expect(firstOf('10:14,3', [50, 8])).toEqual([10]);
  expect(firstOf(' 2 , 5:', [50, 8])).toEqual([5]);
  expect(firstOf(':3', [50, 8])).toEqual([0, 0]);
  expect(firstOf('', [4])).toEqual([0]);
  expect(firstOf('9:', [4])).toEqual([4]);
});

test('one dimension is a column', () => {
  const { rows, columns, rowName, columnName } = layPart([4], [10]);
  expect([rows, columns, rowName?.(3), columnName]).toEqual([4, 1, '13', undefined]);
  expect(layPart([], [])).toEqual({ rows: 1, columns: 1 });
});

test('of more the last one goes across', () => {
  const { rows, columns, rowName, columnName } = layPart([2, 3, 4], [5, 0, 7]);
  expect([rows, columns]).toEqual([6, 4]);
  expect([0, 2, 3, 5].map(row => rowName?.(row))).toEqual(['5, 0', '5, 2', '6, 0', '6, 2']);
  expect([columnName?.(0), columnName?.(3)]).toEqual(['7', '10']);
  expect(layPart([2, 0], [0, 0]).rows).toBe(0);
});
