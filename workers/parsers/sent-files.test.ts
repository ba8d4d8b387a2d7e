import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { tellFiles } from './sent-files.ts';

/** A file whose parts are of ever other sizes. */
function fileOf(count: number) {
  const runs = Array.from({ length: count }, (_, n): [number, number] => [n + 1, 1]);
  const size = runs.reduce((sum, [bytes]) => sum + bytes, 0);
  return { size, runs, hash: createHash('sha256').update(String(count)) };
}

test('the parts of 10,000 runs of sizes are told, of all files together, and the size of each file', () => {
  const counts = [4_000, 3_000, 3_000, 1, 2];
  const files = counts.map(fileOf);
  const told = tellFiles(files);
  expect(told.map(({ size }) => size)).toEqual(files.map(({ size }) => size));
  expect(told.map(({ parts }) => parts?.sizes.length)).toEqual([
    ...[4_000, 3_000, 3_000],
    ...[undefined, undefined],
  ]);
  expect(told[2]?.parts).toEqual({
    sizes: files[2]?.runs,
    digest: createHash('sha256').update('3000').digest('base64'),
  });
});

test('a file with more of them is told by its size alone, and so are those after it', () => {
  const files = [1, 10_000, 1].map(fileOf);
  expect(tellFiles(files).map(({ parts }) => parts?.sizes.length)).toEqual([
    ...[1, undefined, undefined],
  ]);
});
