import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { PARSERS } from '../../shared/uploads/parsers.ts';
import { findDefaultParser } from './default-parser.ts';

test.each([
  ['day.csv', 'csv'],
  ['/data/DAY.TSV', 'csv'],
  ['day.txt', 'csv'],
  ['day.txt.gz', 'csv'],
  ['day.csv.zst', 'csv'],
  ['run.h5', 'hdf5'],
  ['run.nc', 'netcdf'],
  ['run.npz', 'zip'],
  ['frame.png', 'blob'],
  ['run.csv/notes', 'blob'],
  ['.csv.d/notes.gz', 'blob'],
  ['/dev/stdin', 'blob'],
])('%s is read by %s', (path, parser) => {
  expect(findDefaultParser([path])).toBe(parser);
});

test('what is piped is called as its artifact', () => {
  expect(findDefaultParser(['/dev/stdin'], ['day.csv'])).toBe('csv');
  expect(findDefaultParser(['/dev/fd/63', 'b.csv'], ['a.csv', 'x.png'])).toBe('csv');
});

test('files of two parsers are told apart', () => {
  expect(findDefaultParser(['a.csv', 'b.txt'])).toBe('csv');
  expect(() => findDefaultParser(['a.csv', 'b.png'])).toThrow(/a\.csv .* csv, and b\.png by blob/);
});

test('the client in Python takes the same', () => {
  const file = new URL('../../clients/python/src/windlass/_core/parsers.py', import.meta.url);
  const endings = [...readFileSync(file, 'utf8').matchAll(/^ {4}"(\w+)": \(([^)]+)\),$/gm)].map(
    ([, parser = '', list = '']) => [parser, [...list.matchAll(/\w+/g)].map(String)] as const,
  );
  const ours = Object.entries(PARSERS).filter(([parser]) => parser !== 'blob');
  expect(Object.fromEntries(endings)).toEqual(
    Object.fromEntries(
      ours.map(([parser, { extensions }]) => [
        parser,
        parser === 'csv' ? [...extensions, 'txt'] : extensions,
      ]),
    ),
  );
});
