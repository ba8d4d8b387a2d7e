import { expect, test } from 'vitest';
import { nameColumns } from './name-columns.ts';

test('columns get unique names', () => {
  expect(nameColumns(['a', 'A', '', 'a_1', 'a', ' b '])).toEqual([
    ...['a', 'A_2', 'column2', 'a_1', 'a_3', 'b'],
  ]);
  // As fast as there are many.
  expect(nameColumns(Array<string>(2_500).fill('x')).at(-1)).toBe('x_2499');
});

test('no column gets a name that is given to another', () => {
  for (const [given, names] of [
    [
      ['A', 'a', 'a_1'],
      ['A', 'a_2', 'a_1'],
    ],
    [
      ['T', 't', 't_1'],
      ['T', 't_2', 't_1'],
    ],
    [
      ['a', 'a', 'a_1'],
      ['a', 'a_2', 'a_1'],
    ],
    [
      ['a ', 'a'],
      ['a_1', 'a'],
    ],
    [
      [' a', 'A', 'a_1'],
      ['a_2', 'A', 'a_1'],
    ],
    [
      ['', 'column0'],
      ['column0_1', 'column0'],
    ],
    [
      ['a', 'a', 'A_1', ' a_2'],
      ['a', 'a_3', 'A_1', 'a_2'],
    ],
  ] as const)
    expect(nameColumns([...given])).toEqual(names);
});

test('a name that no table has is an error', () => {
  for (const [name, said] of [
    ['a\0', 'the name of column 2 has a NUL character'],
    ['\ud800', 'the name of column 2 has a NUL character or half'],
    ['x'.repeat(1_001), 'the name of column 2 is longer than 1000'],
  ] as const)
    expect(() => nameColumns(['a', name])).toThrow(said);
});
