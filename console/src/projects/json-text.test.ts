import { describe, expect, test } from 'vitest';
import { formatJson, placeOf, readJson } from './json-text.ts';

const VALUES = [
  '0',
  '-0',
  '1e400',
  '123456789012345678901234567890',
  '"a\\u0000\\ud800\\n"',
  'null',
  ' [ ] ',
  '{}',
  '{"a":1,"a":2}',
  '[[1,{"b":[]}],"x",true,-1.50E+2]',
];

describe('a text of JSON', () => {
  test.each(VALUES)('%s is read and formatted without a change of any token', text => {
    const { tokens, error } = readJson(text);
    expect(error).toBeUndefined();
    const words = (from: string) =>
      readJson(from).tokens.map(({ from: at, to }) => from.slice(at, to));
    expect(tokens.length).toBeGreaterThan(0);
    expect(words(formatJson(text))).toEqual(words(text));
    expect(() => JSON.parse(text)).not.toThrow();
  });

  test('is formatted with one member or item a line', () => {
    expect(formatJson('{"a":[1,{"b":{}},[]],"c":12.50}')).toBe(
      '{\n  "a": [\n    1,\n    {\n      "b": {}\n    },\n    []\n  ],\n  "c": 12.50\n}',
    );
    expect(formatJson('["{",":",","]')).toBe('[\n  "{",\n  ":",\n  ","\n]');
  });

  test.each([
    ['', 0, 'a value'],
    ['{"a" 1}', 5, 'colon'],
    ['{"a":1,}', 7, 'name'],
    ['{a:1}', 1, 'name'],
    ['[1 2]', 3, 'comma'],
    ['[1,]', 3, 'a value'],
    ['[1}', 2, 'comma'],
    ['[1', 2, 'too early'],
    ['01', 1, 'nothing'],
    ['+1', 0, 'a value'],
    ['NaN', 0, 'a value'],
    ["'a'", 0, 'a value'],
    ['"a', 0, 'no end'],
    ['"a\nb"', 2, 'line'],
    ['"\\x"', 1, 'escape'],
    ['1 // one', 2, 'nothing'],
  ])('%j is refused at %i', (text, at, problem) => {
    const { error } = readJson(text);
    expect(error?.at).toBe(at);
    expect(error?.problem).toContain(problem);
    expect(() => JSON.parse(text)).toThrow();
  });

  test('a place is told by line and column', () => {
    expect(placeOf('ab\ncd', 0)).toEqual({ line: 1, column: 1 });
    expect(placeOf('ab\ncd', 4)).toEqual({ line: 2, column: 2 });
  });
});
