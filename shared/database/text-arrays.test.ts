import { expect, test } from 'vitest';
import { readTexts, writeTexts } from './text-arrays.ts';

test('texts are read from what PostgreSQL writes', () => {
  const written = String.raw`{a,"a\\b","\\","\"","\\\"","a,b","{}","NULL",""," ","
"}`;
  const texts = ['a', 'a\\b', '\\', '"', '\\"', 'a,b', '{}', 'NULL', '', ' ', '\n'];
  expect(readTexts(written)).toEqual(texts);
  expect(readTexts('{}')).toEqual([]);
  expect(readTexts(writeTexts(texts))).toEqual(texts);
  expect(readTexts(writeTexts(['x'.repeat(65_536), '\\"'.repeat(65_536)]))).toEqual([
    'x'.repeat(65_536),
    '\\"'.repeat(65_536),
  ]);
});
