import { expect, test } from 'vitest';
import { boxesOf, extentsOfBoxes } from './read-blocks.ts';

const layout = (shape: number[], chunks: number[] | null, size = 4) =>
  extentsOfBoxes(shape, { size, chunks });

test('a film in chunks of many pictures is read in boxes of whole chunks', () => {
  const [shape, chunks] = [
    [200, 2000, 2000],
    [200, 50, 50],
  ];
  const extents = layout(shape, chunks) ?? [];
  expect(extents).toEqual([200, 50, 400]);
  const boxes = [...boxesOf(shape, extents)];
  const values = boxes.map(({ count }) => count.reduce((product, n) => product * n, 1));
  expect(Math.max(...values) * 4).toBeLessThanOrEqual(16 << 20);
  expect(values.reduce((sum, n) => sum + n, 0)).toBe(200 * 2000 * 2000);
  expect(new Set(boxes.map(({ from }) => from.join())).size).toBe(boxes.length);
  for (const { from } of boxes)
    expect(from.map((at, d) => at % (chunks[d] ?? 1))).toEqual([0, 0, 0]);
});

test.each([
  ['without chunks', [200, 2000, 2000], null],
  ['of whole pictures', [200, 2000, 2000], [1, 2000, 2000]],
  ['of parts of a picture', [200, 2000, 2000], [1, 500, 2000]],
  ['of all that is read at once', [200, 100, 100], [40, 50, 50]],
  ['larger than a box', [200, 2000, 2000], [200, 400, 2000]],
  ['that are long and thin', [8 << 20, 50], [8 << 20, 1]],
  ['of an empty array', [0, 2000, 2000], [10, 50, 50]],
])('chunks %s are read in blocks', (_, shape, chunks) => {
  expect(layout(shape, chunks)).toBeUndefined();
});
