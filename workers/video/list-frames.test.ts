import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { sortNaturally } from '../../shared/sort-naturally.ts';
import { STREAM_MAGIC } from './frame-stream.ts';
import { readNames } from './list-frames.ts';

test('runs of digits are sorted by their value', () => {
  const sorted = ['a1b', 'a', 'a01', 'a1', 'a2', 'a2.5', 'a10', 'a10b2', 'a10b11', 'ab', 'b0'];
  expect(sortNaturally([...sorted].sort())).toEqual([
    ...['a', 'a01', 'a1', 'a1b', 'a2', 'a2.5', 'a10', 'a10b2', 'a10b11', 'ab', 'b0'],
  ]);
});

test.each(['a', 'a1', 'a1-', '7', '/run 10/a'])('also after %s, which all begin with', start => {
  const names = ['', '0', '1', '01', '10', '2', '-', '-2', '-10', 'b', ' ', '.png', '1.png'];
  const whole = names.map(name => `${start}${name}`);
  expect(sortNaturally(whole, start)).toEqual(sortNaturally(whole));
});

test('however many runs the names have, sorting them takes no memory for each', () => {
  const names = Array.from({ length: 20_000 }, (_, i) => `${'a1'.repeat(120)}${i % 7}b${i}`);
  const before = process.memoryUsage().heapUsed;
  const sorted = sortNaturally(names);
  // Each run of each name took 64 bytes: 300 MB.
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(100e6);
  expect(sorted.slice(0, 2).map(name => name.slice(240))).toEqual(['0b0', '0b7']);
});

test('a pattern that matches more files than can be sorted soon is refused', async () => {
  const printed = Buffer.from(`\n${STREAM_MAGIC}\n${'/a\0'.repeat(1_000_001)}\0`);
  const reading = readNames(Readable.from([printed], { objectMode: false }));
  await expect(reading).rejects.toThrow('too many files: at most 1000000');
});
