import { expect, test } from 'vitest';
import { meetsRule, parseClaimRule } from './claims.ts';

test('a rule is met by a text, or by an item of a list', () => {
  const rule = parseClaimRule('groups=operators');
  for (const groups of ['operators', ['operators'], ['users', 'operators']])
    expect([groups, meetsRule({ groups }, rule)]).toEqual([groups, true]);
});

test('nothing else meets it', () => {
  const rule = parseClaimRule('groups=operators');
  for (const groups of [
    undefined,
    null,
    true,
    '',
    'operators ',
    'OPERATORS',
    'a,operators',
    {},
    [],
  ])
    expect([groups, meetsRule({ groups }, rule)]).toEqual([groups, false]);
  expect(meetsRule({ operators: true }, rule)).toBe(false);
  expect(meetsRule({}, parseClaimRule('constructor=x'))).toBe(false);
});

test('a name ends at the first sign of equality', () => {
  expect(parseClaimRule('https://site.example/role=a=b')).toEqual({
    claim: 'https://site.example/role',
    value: 'a=b',
  });
});
