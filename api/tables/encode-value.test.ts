import { expect, test } from 'vitest';
import { encodeValue } from './encode-value.ts';

test('a whole number past 2^53 has the digits of its double, not zeros in the place of some', () => {
  for (const [value, text] of [
    [2 ** 57, '144115188075855872'],
    [-(2 ** 57), '-144115188075855872'],
    [2 ** 53, '9007199254740992'],
    [2 ** 53 + 2, '9007199254740994'],
    [2 ** 69, '590295810358705651712'],
    [2 ** 70, '1.1805916207174113e+21'],
    [-0, '-0'],
    [0.1, '0.1'],
  ] as const)
    expect(encodeValue(value)).toBe(text);
});
