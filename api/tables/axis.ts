import type { ColumnStatistics } from '../../shared/database/schema.ts';
import { isExact } from './encode-value.ts';
import { type Scalar, scaleOf } from './scale.ts';

const MAX_SAFE = 2n ** 53n;

/** A column of a plot. Its values are doubles, exactly: those past 2^53 as their distance from the least one, or another. */
export interface Axis {
  column: string;
  /** The value that distances are from. */
  base: bigint | undefined;
  /** Whether edges of buckets are rounded up to whole numbers: of days, microseconds, and integers that are texts. */
  isWhole: boolean;
  min: number;
  max: number;
  /** The double of a value as RAW_PARSERS decode it; NaN for a missing one. */
  toDouble(value: unknown): number;
  /** The double of a text that checkFilterValue() has passed: of integers that are no texts, of a number. */
  parse(text: string): number;
  /** A double as the JSON of its value. */
  write(value: number): string;
}

/**
 * The axis of a column of numbers or times; undefined where it has no value. One that isTooWide() needs a `from`: values
 * that are 2^53 or more away from it are rounded, and stay as far away.
 */
export function axisOf(column: ColumnStatistics, from?: string): Axis | undefined {
  const scale = scaleOf(column);
  if (!scale) return undefined;
  const { min, max } = scale;
  const parse = (text: string) => scale.parse(text.replace(/^\+/, ''));
  const least = from === undefined ? min : parse(from);
  const base = needsBase(min, max) ? BigInt(least) : undefined;
  const toDouble = (value: Scalar) => Number(base === undefined ? value : BigInt(value) - base);
  const hasFractions = column.type === 'number' || (column.type === 'integer' && !isExact(column));
  return {
    column: column.name,
    base,
    isWhole: !hasFractions,
    min: toDouble(min),
    max: toDouble(max),
    toDouble: value =>
      value === null || value === undefined ? Number.NaN : toDouble(value as Scalar),
    parse: text => (hasFractions ? Number(text) : toDouble(parse(text))),
    write: value => scale.write(base === undefined ? value : base + BigInt(value)),
  };
}

/** Whether doubles cannot tell apart all values of the column, and the one after the greatest. */
export function isTooWide(column: ColumnStatistics): boolean {
  const { min = 0, max = 0 } = scaleOf(column) ?? {};
  return needsBase(min, max) && BigInt(max) - BigInt(min) >= MAX_SAFE;
}

const needsBase = (min: Scalar, max: Scalar) =>
  typeof min === 'bigint' && typeof max === 'bigint' && (min < -MAX_SAFE || max > MAX_SAFE);
