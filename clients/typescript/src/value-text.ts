import type { Value } from './rows.ts';

/**
 * The text of a value, with a number's digits as the service writes them. JavaScript has other ones for -0, and for whole
 * numbers past 2^53, whose last digits it writes as zeros.
 */
export function valueText(value: Value): string {
  if (typeof value !== 'number') return String(value);
  if (Object.is(value, -0)) return '-0';
  const isLarge = Number.isInteger(value) && !Number.isSafeInteger(value);
  return isLarge && Math.abs(value) < 1e21 ? String(BigInt(value)) : String(value);
}
