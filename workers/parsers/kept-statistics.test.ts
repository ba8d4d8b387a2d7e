import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import type { ColumnStatistics } from '../../shared/database/schema.ts';
import { KeptStatistics, unpackColumns } from './kept-statistics.ts';
import { fitStatistics, MAX_TABLE_STATISTICS } from './table/fit-statistics.ts';

const bytesOf = (columns: ColumnStatistics[]) => Buffer.byteLength(JSON.stringify(columns));

/** Text columns with 20 values of 80 characters that cannot be compressed well. */
const texts = (columns: number): ColumnStatistics[] => {
  const value = () => randomBytes(60).toString('base64');
  return Array.from({ length: columns }, (_, i) => ({
    name: `c${i}`,
    type: 'text',
    min: value(),
    max: value(),
    nulls: 0,
    top: Array.from({ length: 20 }, () => ({ value: value(), count: 1 })),
  }));
};
const numbers: ColumnStatistics[] = Array.from({ length: 2_500 }, (_, i) => ({
  name: `n${i}`,
  type: 'number',
  min: -i,
  max: i,
  nulls: 0,
}));

test('statistics that fit stay whole; texts of others are shortened, then fewer', () => {
  const usual = texts(100);
  expect(fitStatistics(usual, MAX_TABLE_STATISTICS)).toBe(usual);
  const wide = texts(2_500);
  expect(bytesOf(wide)).toBeGreaterThan(2 * MAX_TABLE_STATISTICS);
  const fitted = fitStatistics(wide, MAX_TABLE_STATISTICS);
  expect(bytesOf(fitted)).toBeLessThan(MAX_TABLE_STATISTICS);
  const [first] = wide;
  expect(fitted[0]?.top?.length).toBeGreaterThanOrEqual(5);
  expect(first?.top?.[0]?.value.startsWith(fitted[0]?.top?.[0]?.value ?? '-')).toBe(true);
  expect(fitted[0]?.top?.every(({ cut }) => cut)).toBe(true);
  // Requests need names, types, and bounds of numbers.
  const least = fitStatistics([...wide, ...numbers], 0);
  expect(least.map(({ name, type }) => [name, type])).toEqual(
    [...wide, ...numbers].map(({ name, type }) => [name, type]),
  );
  expect(least[0]?.top).toBe(undefined);
  expect(least.slice(2_500)).toEqual(numbers);
});

test('the statistics of an upload take bounded memory, whatever the number of its tables', async () => {
  const max = 1 << 20;
  const kept = new KeptStatistics(max);
  const table = texts(100);
  expect(bytesOf(table) * 40).toBeGreaterThan(8 * max);
  let held = 0;
  let last: ColumnStatistics[] = [];
  for (let left = 40; left > 0; left--) {
    const packed = await kept.keep(table, left);
    held += packed.packed.length;
    const text = await unpackColumns(packed);
    expect(Buffer.byteLength(text)).toBe(packed.bytes);
    last = JSON.parse(text);
  }
  expect(held).toBeLessThan(max);
  expect(last.map(({ name }) => name)).toEqual(table.map(({ name }) => name));
});

test('names that alone take more than that are refused', async () => {
  const kept = new KeptStatistics(1_000);
  await expect(kept.keep(numbers, 1)).rejects.toMatchObject({
    code: 'parse_failed',
    hint: 'Make several uploads, each with fewer files.',
  });
});
