import { expect, test } from 'vitest';
import { layColumns } from './column-layout.ts';

const column = (type: 'integer' | 'number', [min, max]: [number | string, number | string]) => ({
  name: 'a',
  type,
  min,
  max,
  nulls: 0,
});

test('a column is as wide as its numbers', () => {
  const [, few = 0, many = 0] = layColumns([
    column('integer', [0, 9]),
    column('integer', ['-9223372036854775808', '9223372036854775807']),
  ]);
  expect(few).toBe(120);
  expect((many - few) / '-9223372036854775808'.length).toBeGreaterThan(8);
  const [, double = 0] = layColumns([column('number', [0, 1])]);
  expect(double / '-1.7976931348623157e+308'.length).toBeGreaterThan(8);
});
