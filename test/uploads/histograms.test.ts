import { readFile } from 'node:fs/promises';
import { parquetMetadata } from 'hyparquet';
import { afterAll, expect, test } from 'vitest';
import { makeHistogram } from '../../api/tables/histogram.ts';
import { parseFile } from '../harness/clients/parsed-file.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';

const directory = makeTempDir('histograms');
afterAll(() => directory.remove());

interface Bin {
  from: number | string;
  to: number | string;
  count: number;
}

interface Histogram {
  nulls: number;
  others: number;
  bins: Bin[];
}

/** The bins of a table's only column, whose values are these texts. */
async function binsOf(values: string[], bins: number): Promise<Bin[]> {
  const content = Buffer.from(`x\n${values.join('\n')}\n`);
  const { others, bins: found } = await histogramOf({ parser: 'csv', content }, bins);
  expect(others).toBe(0);
  return found;
}

async function histogramOf(
  file: { parser: 'csv' | 'npy'; content: Buffer },
  bins: number,
): Promise<Histogram> {
  const made = (await parseFile(directory.path, file))[''];
  const bytes = await readFile(made?.path ?? '');
  const buffer = new Uint8Array(bytes).buffer;
  const read = { byteLength: buffer.byteLength, slice: buffer.slice.bind(buffer) };
  const [column] = made?.columns ?? [];
  if (!column) throw new Error('no column');
  const text = await makeHistogram(read, parquetMetadata(buffer), { column, bins });
  return JSON.parse(text) as Histogram;
}

const upTo = (n: number) => Array.from({ length: n }, (_, i) => i);

/** How many values are in each bin as its edges say. */
function countByEdges<T>(bins: Bin[], values: T[], read: (edge: number | string) => T): number[] {
  return bins.map(
    ({ from, to }, i) =>
      values.filter(
        value =>
          value >= read(from) && (i === bins.length - 1 ? value <= read(to) : value < read(to)),
      ).length,
  );
}

test('numbers that are in no bin are counted apart', async () => {
  const npy = (values: number[]) => {
    const header = `{'descr': '<f8', 'fortran_order': False, 'shape': (${values.length},)}`;
    const content = Buffer.concat([
      Buffer.from('\x93NUMPY\x01\x00v\x00', 'latin1'),
      Buffer.from(`${header.padEnd(117)}\n`),
      Buffer.from(new Float64Array(values).buffer),
    ]);
    return { parser: 'npy' as const, content };
  };
  expect(await histogramOf(npy([1, Number.NaN, 2, Infinity, -Infinity]), 1)).toEqual({
    nulls: 0,
    others: 3,
    bins: [{ from: 1, to: 2, count: 2 }],
  });
  expect(await histogramOf(npy([Number.NaN, Infinity]), 3)).toEqual({
    nulls: 0,
    others: 2,
    bins: [],
  });
});

test('a column with one value has one bin that counts all rows', async () => {
  expect(await binsOf(['5', '5', '5'], 20)).toEqual([{ from: 5, to: 5, count: 3 }]);
  expect(await binsOf(['1.5', '1.5', ''], 20)).toEqual([{ from: 1.5, to: 1.5, count: 2 }]);
  expect(await binsOf(['2020-01-02'], 20)).toEqual([
    { from: '2020-01-02', to: '2020-01-02', count: 1 },
  ]);
  const time = '2020-01-02T03:04:05.000001Z';
  expect(await binsOf([time, time], 20)).toEqual([{ from: time, to: time, count: 2 }]);
  const long = '9007199254740993';
  expect(await binsOf([long, long], 20)).toEqual([{ from: long, to: long, count: 2 }]);
});

test('each bin counts what its edges enclose', async () => {
  // NumPy's bins of these: one in each, and two in the last.
  expect((await binsOf(upTo(50).map(String), 49)).map(({ count }) => count)).toEqual([
    ...Array<number>(48).fill(1),
    2,
  ]);
  for (const bins of [7, 10, 33, 49, 97]) {
    const tenths = upTo(50).map(n => n / 10);
    const found = await binsOf(tenths.map(String), bins);
    expect(found.map(({ count }) => count)).toEqual(countByEdges(found, tenths, Number));
    const long = upTo(50).map(n => 2n ** 53n + BigInt(n * n));
    const ids = await binsOf(long.map(String), bins);
    expect(ids.map(({ count }) => count)).toEqual(countByEdges(ids, long, BigInt));
    const days = upTo(20).map(n => `2020-01-${String(n + 1).padStart(2, '0')}`);
    const dates = await binsOf(days, bins);
    expect(dates.map(({ count }) => count)).toEqual(countByEdges(dates, days, String));
  }
  const ends = ['-1.7e308', '0', '1.7e308', '5e-324'];
  const wide = await binsOf(ends, 4);
  expect(wide.map(({ count }) => count)).toEqual(countByEdges(wide, ends.map(Number), Number));
  const least = ['5e-324', '1e-323', '1.5e-323'];
  const narrow = await binsOf(least, 5);
  expect(narrow.map(({ count }) => count)).toEqual(countByEdges(narrow, least.map(Number), Number));
});
