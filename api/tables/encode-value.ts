import type { SchemaElement } from 'hyparquet/src/types.js';

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
  const rest = fraction === 0n ? '' : `.${String(fraction).padStart(6, '0').replace(/0+$/, '')}`;
  return words.map(word => String(word).padStart(2, '0')).join(':') + rest;
}

/** Microseconds since 1970 as YYYY-MM-DDTHH:MM:SS, exact: a Date has milliseconds only. */
export function formatTimestamp(micros: bigint): string {
  const within = ((micros % MICROS_PER_DAY) + MICROS_PER_DAY) % MICROS_PER_DAY;
  const day = formatDay(Number((micros - within) / MICROS_PER_DAY));
  return day.endsWith('Infinity') ? day : `${day}T${formatTime(within)}`;
}

/** Parsers that replace hyparquet's Dates, which lose microseconds. */
export const EXACT_PARSERS = {
  dateFromDays: formatDay,
  timestampFromMicroseconds: formatTimestamp,
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

/** Integers of any size are JSON numbers; NaN and the infinities, which JSON lacks, are strings. */
export function encodeValue(value: unknown): string {
  if (value === null || value === undefined) return 'null';
  if (typeof value === 'bigint') return value.toString();
  if (typeof value === 'number') return Number.isFinite(value) ? String(value) : `"${value}"`;
  return JSON.stringify(value);
}
