import { expect, test } from 'vitest';
import { parquetStatement, type TableSize } from './parquet-statement.ts';

function groupRows(size: TableSize): number {
  const statement = parquetStatement({ select: 'SELECT 1', output: '/t.parquet' }, size);
  return Number(/ROW_GROUP_SIZE (\d+)/.exec(statement)?.[1]);
}

test('the row groups of a usual table are small', () => {
  expect(groupRows({ columns: 3, rows: 10_000_000, bytesPerRow: 20 })).toBe(8_192);
  expect(groupRows({ columns: 300, rows: 58_000, bytesPerRow: 3_400 })).toBe(3_333);
  expect(groupRows({ columns: 2, rows: 1_000, bytesPerRow: 1_000_000 })).toBe(33);
  expect(groupRows({ columns: 2, rows: 1_000, bytesPerRow: 2_000_000 })).toBe(32);
  expect(groupRows({ columns: 2, rows: 0, bytesPerRow: 0 })).toBe(8_192);
});

test.each([
  { columns: 3, rows: 484_000_000, bytesPerRow: 20.7 },
  { columns: 90, rows: 55_000_000, bytesPerRow: 180 },
  { columns: 300, rows: 2_900_000, bytesPerRow: 3_448 },
])('10 GB of $columns columns are written with few column chunks', size => {
  const chunks = (size.rows / groupRows(size)) * size.columns;
  expect(chunks).toBeLessThan(50_000);
});

test('a row group holds what a page may hold', () => {
  for (const columns of [1, 90, 300, 2_000])
    for (const bytesPerRow of [20, 3_448, 60_000]) {
      const rows = groupRows({ columns, rows: 1e10 / bytesPerRow, bytesPerRow });
      expect(rows).toBeLessThanOrEqual(Math.max(32, (64 << 20) / bytesPerRow));
    }
});
