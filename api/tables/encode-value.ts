import type { SchemaElement } from 'hyparquet/src/types.js';
import type { ColumnStatistics } from '../../shared/database/schema.ts';

const MAX_SAFE = 2n ** 53n;
const MICROS_PER_SECOND = 1_000_000n;
const MICROS_PER_DAY = 86_400n * MICROS_PER_SECOND;

/** Writes a column's value as JSON. */
export type Encode = (value: unknown) => string;

/** Days since 1970 as YYYY-MM-DD; an infinity beyond the range of Date. */
export function formatDay(days: number): string {
  const time = new Date(days * 86_400_000);
  if (Number.isNaN(time.getTime())) return days < 0 ? '-Infinity' : 'Infinity';
  return time.toISOString().slice(0, -14);
}

/** Microseconds since midnight as HH:MM:SS, with a fraction unless it is 0. */
export function formatTime(micros: bigint): string {
  const seconds = Number(micros / MICROS_PER_SECOND);
  const words = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60, seconds % 60];
  const fraction = micros % MICROS_PER_SECOND;
  const rest =
    fraction === 0n
      ? ''
      : `.${String(fraction)
          .padStart(6, '0')
          .replace(/(?<!0)0+$/, '')}`;
  return words.map(word => String(word).padStart(2, '0')).join(':') + rest;
}

/** Microseconds since 1970 as YYYY-MM-DDTHH:MM:SS, exact: a Date has milliseconds only. */
export function formatTimestamp(micros: bigint): string {
  const within = ((micros % MICROS_PER_DAY) + MICROS_PER_DAY) % MICROS_PER_DAY;
  const day = formatDay(Number((micros - within) / MICROS_PER_DAY));
  return day.endsWith('Infinity') ? day : `${day}T${formatTime(within)}`;
}

const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });

/** A text with a mark at its beginning, as files have that were put together of several: hyparquet's own parser drops it. */
const stringFromBytes = (bytes: Uint8Array | undefined) => bytes && utf8.decode(bytes);

/** Parsers that replace hyparquet's Dates, which lose microseconds. */
export const EXACT_PARSERS = {
  stringFromBytes,
  dateFromDays: formatDay,
  timestampFromMicroseconds: formatTimestamp,
};

/** Parsers that give dates as days since 1970, and timestamps as microseconds. */
export const RAW_PARSERS = {
  stringFromBytes,
  dateFromDays: (days: number) => days,
  timestampFromMicroseconds: (micros: bigint) => micros,
};

/** The encoder for a column of the Parquet schema. */
export function encoderOf(element: SchemaElement): Encode {
  const { logical_type: logical, converted_type: converted } = element;
  if (logical?.type === 'TIME' || converted === 'TIME_MICROS')
    return value => (isMissing(value) ? 'null' : `"${formatTime(value as bigint)}"`);
  if (logical?.type === 'TIMESTAMP' && logical.isAdjustedToUTC)
    return value => (isMissing(value) ? 'null' : `"${value}${isInfinity(value) ? '' : 'Z'}"`);
  return encodeValue;
}

const isMissing = (value: unknown) => value === null || value === undefined;
const isInfinity = (value: unknown) => String(value).endsWith('Infinity');

/** NaN and the infinities, which JSON lacks, are strings. */
export function encodeValue(value: unknown): string {
  if (value === null || value === undefined) return 'null';
  if (typeof value === 'bigint') return value.toString();
  if (Object.is(value, -0)) return '-0';
  if (typeof value === 'number') return Number.isFinite(value) ? writeDouble(value) : `"${value}"`;
  return JSON.stringify(value);
}

/** JavaScript writes a whole number past 2^53 as its first digits and zeros, which a reader takes for another integer. */
const writeDouble = (value: number) =>
  Number.isInteger(value) && !Number.isSafeInteger(value) && Math.abs(value) < 1e21
    ? BigInt(value).toString()
    : String(value);

/** Integers beyond 2^53 as JSON strings: most clients would round a JSON number. */
export const encodeExact: Encode = value => (isMissing(value) ? 'null' : `"${value}"`);

/** A sum of integers, which has any number of digits and is stored as text. */
export const encodeSum: Encode = value => {
  if (isMissing(value)) return 'null';
  const sum = BigInt(String(value));
  return sum < -MAX_SAFE || sum > MAX_SAFE ? encodeExact(sum) : encodeValue(sum);
};

/** Whether the column holds integers that most clients would round. */
export function isExact({ type, min, max }: ColumnStatistics): boolean {
  if (type !== 'integer' || min === null || max === null) return false;
  return BigInt(String(min)) < -MAX_SAFE || BigInt(String(max)) > MAX_SAFE;
}
