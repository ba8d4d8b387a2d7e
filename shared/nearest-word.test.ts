import { expect, test } from 'vitest';
import { nearestWord } from './nearest-word.ts';

const known = ['lab', 'cluster', 'cluster2', 'gpu.example.org'];

test.each([
  ['laab', 'lab'],
  ['alb', 'lab'],
  ['la', 'lab'],
  ['clutser', 'cluster'],
  ['cluster3', 'cluster'],
  ['gpu.exmaple.org', 'gpu.example.org'],
  ['nothing', undefined],
  ['x', undefined],
])('by %s is meant %s', (given, meant) => {
  expect(nearestWord(given, known)).toBe(meant);
});
