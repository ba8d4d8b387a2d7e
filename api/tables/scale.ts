import type { ColumnStatistics } from '../../shared/database/schema.ts';
import {
  encodeExact,
  encodeValue,
  formatDay,
  formatTime,
  formatTimestamp,
  isExact,
} from './encode-value.ts';

/** A value as RAW_PARSERS decode it. */
export type Scalar = number | bigint;

/** How a column's values are numbers of one axis. */
export interface Scale {
  min: Scalar;
  max: Scalar;
  /** Whether there is nothing between two neighbours: of integers, days and microseconds. */
  isWhole: boolean;
  /** The number of a value that is written as in JSON. Its form was checked by checkFilterValue(). */
  parse(text: string): Scalar;
  /** A value as JSON. */
  write(value: Scalar): string;
}

/** The scale of a column of numbers or times; undefined where it has no value. */
export function scaleOf(column: ColumnStatistics): Scale | undefined {
  const { type, min, max } = column;
  if (min === null || max === null) return undefined;
  const zone = String(min).endsWith('Z') ? 'Z' : '';
  const whole = (value: Scalar) => (typeof value === 'bigint' ? value : BigInt(Math.round(value)));
  const scale = (parse: Scale['parse'], write: Scale['write']): Scale => ({
    min: parse(String(min)),
    max: parse(String(max)),
    isWhole: type !== 'number',
    parse,
    write,
  });
  switch (type) {
    case 'integer':
      return scale(BigInt, isExact(column) ? encodeExact : encodeValue);
    case 'number':
      return scale(Number, encodeValue);
    case 'date':
      return scale(parseDay, value => `"${formatDay(Math.round(Number(value)))}"`);
    case 'time':
      return scale(parseTime, value => `"${formatTime(whole(value))}"`);
    case 'timestamp':
      return scale(parseTimestamp, value => `"${formatTimestamp(whole(value))}${zone}"`);
    default:
      return undefined;
  }
}

/** The value at this share, 0…1, of the way from min to max. */
export function between(min: Scalar, max: Scalar, share: number): number {
  return Number(min) * (1 - share) + Number(max) * share;
}

const parseDay = (text: string) => Date.parse(`${text}T00:00:00Z`) / 86_400_000;

function parseTime(text: string): bigint {
  const [hours = 0, minutes = 0, seconds = 0] = text.split('.')[0]?.split(':').map(Number) ?? [];
  const fraction = (text.split('.')[1] ?? '').padEnd(6, '0');
  return BigInt(hours * 3_600 + minutes * 60 + seconds) * 1_000_000n + BigInt(fraction);
}

/** YYYY-MM-DD, with `T` or a space a time, and with or without a zone, which is UTC where there is none. */
export function parseTimestamp(text: string): bigint {
  const [, day = '', time = '0', zone = 'Z'] =
    /^((?:\d{4}|[-+]\d{6})-\d{2}-\d{2})(?:[T ]([\d:.]+))?(Z|[-+]\d{2}:\d{2})?$/.exec(text) ?? [];
  const utc = BigInt(parseDay(day)) * 86_400_000_000n + parseTime(time);
  if (zone === 'Z') return utc;
  const offset = parseTime(zone.slice(1));
  return zone[0] === '-' ? utc + offset : utc - offset;
}
