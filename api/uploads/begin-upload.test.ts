import { expect, test } from 'vitest';
import { PARSERS } from '../../shared/uploads/parsers.ts';
import { newParameters } from './begin-upload.ts';

test('signs of CSV that are the same are refused before anything is sent', () => {
  const wrong = (given: object) =>
    newParameters(PARSERS.csv.parameters)
      .safeParse(given)
      .error?.issues.map(({ path }) => path.join('.'));
  expect(wrong({ delimiter: '"' })).toEqual(['delimiter']);
  expect(wrong({ delimiter: ';', quote: ';' })).toEqual(['delimiter']);
  expect(wrong({ comment: '"' })).toEqual(['comment']);
  expect(wrong({ comment: ';', delimiter: ';' })).toEqual(['comment']);
  expect(wrong({ delimiter: '"', quote: "'", comment: '#' })).toBeUndefined();
  expect(wrong({})).toBeUndefined();
});
