import { expect, test } from 'vitest';
import { countMembers, measureJson } from './measure-json.ts';

const deeper = (text: string, limit: number) => measureJson(Buffer.from(text)).depth > limit;

test('depth counts open brackets', () => {
  expect(deeper('1', 0)).toBe(false);
  expect(deeper('[]', 0)).toBe(true);
  expect(deeper('[[],[],{}]', 2)).toBe(false);
  expect(deeper('[[],[{}]]', 2)).toBe(true);
  expect(deeper(`${'['.repeat(100)}${']'.repeat(100)}`, 100)).toBe(false);
  expect(deeper(`${'{"a":'.repeat(101)}1${'}'.repeat(101)}`, 100)).toBe(true);
});

test('brackets in strings do not count, whatever is escaped', () => {
  expect(deeper('["[[[[{{{{"]', 1)).toBe(false);
  expect(deeper('["\\"[[[[", "\\\\"]', 1)).toBe(false);
  expect(deeper('["\\\\", [[]]]', 2)).toBe(true);
  expect(deeper('{"a\\u005b":"ä[[[😀["}', 1)).toBe(false);
});

test('the members of a text are those of its value, unless one is there twice', () => {
  const measured = (text: string) => [
    measureJson(Buffer.from(text)).members,
    countMembers(JSON.parse(text)),
  ];
  expect(measured('{"a:":":","b":[{"c":{}},{"__proto__":null}],"\\":":1}')).toEqual([5, 5]);
  expect(measured('["a:b",1]')).toEqual([0, 0]);
  expect(measured('{"a":{"b":1,"b":2}}')).toEqual([3, 2]);
  expect(measured('{"a":1,"\\u0061":1}')).toEqual([2, 1]);
});
