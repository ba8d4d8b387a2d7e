import { expect, test } from 'vitest';
import { formatCount, roundTo } from './numbers.ts';

test.each([
  [0, '0'],
  [12.0006, '12.0006'],
  [-80_334.33333, '-80,334.3'],
  [0.000_001_5, '0.0000015'],
  [1.67e-27, '1.67e-27'],
  [-4.489712379304426e-9, '-4.48971e-9'],
  [1e-250, '1e-250'],
  [999_999_999_999_999, '1,000,000,000,000,000'],
  [1e15, '1e+15'],
  // Rounded up it would be no number.
  [Number.MAX_VALUE, '1.79769e+308'],
])('%d is told by its magnitude', (value, text) => {
  expect(roundTo(6)(value)).toBe(text);
});

test('thousands of a count stand apart', () => {
  expect(formatCount(1_234_567)).toBe('1,234,567');
});
