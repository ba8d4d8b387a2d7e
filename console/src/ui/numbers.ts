const grouped = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });

/**
 * Numbers are written as files and filters have them, with a point, whatever language the browser speaks. The thousands
 * of counts stand apart.
 */
export const formatCount = (count: number): string => grouped.format(count);

/** Beyond these a number is all zeros. */
const LEAST = 1e-6;
const MOST = 1e15;

/** A value, rounded to so many digits that count. */
export function roundTo(digits: number): (value: number) => string {
  const plain = new Intl.NumberFormat('en', { maximumSignificantDigits: digits });
  return value => {
    const size = Math.abs(value);
    if (size === 0 || (size >= LEAST && size < MOST)) return plain.format(value);
    return value.toExponential(digits - 1).replace(/\.?0+e/, 'e');
  };
}
