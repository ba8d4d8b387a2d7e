import { expect, test } from 'vitest';
import { isDeeperThan } from './read-json.ts';

const deeper = (text: string, limit: number) => isDeeperThan(Buffer.from(text), limit);

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
