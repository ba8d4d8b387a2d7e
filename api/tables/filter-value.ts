import type { ColumnStatistics } from '../../shared/database/schema.ts';
import type { TableFilter } from '../../shared/jobs/payloads/table-query.ts';
import { formatTimestamp } from './encode-value.ts';
import { parseTimestamp } from './scale.ts';

const MAX_LENGTH = 1_000;
const INT64 = 2n ** 63n;

/** What is wrong with a filter's value for a column of this type. Checked here, so that no job starts that must fail. */
export function checkFilterValue(
  type: ColumnStatistics['type'],
  op: TableFilter['op'],
  value: string,
): string | undefined {
  if (op === 'null')
    return value === 'true' || value === 'false' ? undefined : 'must be true or false';
  if (value.length > MAX_LENGTH) return `must have at most ${MAX_LENGTH} characters`;
  switch (type) {
    case 'boolean':
      if (op !== 'eq' && op !== 'ne') return 'true and false can be compared by eq and ne only';
      return value === 'true' || value === 'false' ? undefined : 'must be true or false';
    case 'integer':
      if (isInt64(value) || (isOrder(op) && isNumber(value))) return undefined;
      return `must be an integer of 64 bits${isOrder(op) ? ' or a decimal number' : ''}`;
    case 'number':
      if (value === 'NaN' && isOrder(op)) return 'NaN can be compared by eq and ne only';
      return isNumber(value) || NOT_FINITE.includes(value)
        ? undefined
        : 'must be a number, or NaN, Infinity or -Infinity';
    case 'date':
      return isDate(value) ? undefined : 'must be a date as YYYY-MM-DD';
    case 'time':
      return isTime(value) ? undefined : 'must be a time as HH:MM:SS';
    case 'timestamp':
      return isTimestamp(value) ? undefined : 'must be a date and time as YYYY-MM-DDTHH:MM:SS';
    case 'text':
      return /[\0\p{Surrogate}]/u.test(value)
        ? 'must be well-formed Unicode without NUL'
        : undefined;
  }
}

const isOrder = (op: TableFilter['op']) => op !== 'eq' && op !== 'ne';
/** These values, as answers write them. */
const NOT_FINITE = ['NaN', 'Infinity', '-Infinity'];

/**
 * A condition on integers with its bound rounded to an integer, so that the same rows pass: histograms and plots of integers
 * have edges in between.
 */
export function roundBound({
  op,
  value,
}: Pick<TableFilter, 'op' | 'value'>): Pick<TableFilter, 'op' | 'value'> {
  if (op === 'null' || isInt64(value)) return { op, value };
  // What is below 1.5 is below 2, and what is above it is above 1.
  const bound = roundDecimal(value, op === 'lt' || op === 'ge');
  const isUpper = op === 'lt' || op === 'le';
  if (bound >= INT64) return { op: isUpper ? 'le' : 'gt', value: String(INT64 - 1n) };
  if (bound < -INT64) return { op: isUpper ? 'lt' : 'ge', value: String(-INT64) };
  return { op, value: String(bound) };
}

/** A decimal as the next integer above or below it, exactly. */
function roundDecimal(text: string, isUp: boolean): bigint {
  const [, sign, whole = '', fraction = '', exponent = '0'] =
    /^([-+]?)(\d*)(?:\.(\d*))?(?:e([-+]?\d+))?$/i.exec(text) ?? [];
  const digits = BigInt(`${sign === '-' ? '-' : ''}${whole}${fraction}`);
  const shift = Number(exponent) - fraction.length;
  if (shift >= 0) return digits * 10n ** BigInt(shift);
  const unit = 10n ** BigInt(-shift);
  const towardsZero = digits / unit;
  if (digits % unit === 0n) return towardsZero;
  if (isUp) return digits > 0n ? towardsZero + 1n : towardsZero;
  return digits < 0n ? towardsZero - 1n : towardsZero;
}

function isInt64(value: string): boolean {
  if (!/^[-+]?\d{1,20}$/.test(value)) return false;
  const n = BigInt(value.replace('+', ''));
  return n >= -INT64 && n < INT64;
}

const isNumber = (value: string) =>
  /^[-+]?(\d+(\.\d*)?|\.\d+)(e[-+]?\d{1,3})?$/i.test(value) && Number.isFinite(Number(value));

function isDate(value: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(value)) return false;
  const time = new Date(`${value}T00:00:00Z`);
  return !Number.isNaN(time.getTime()) && time.toISOString().startsWith(value);
}

const isTime = (value: string) => /^([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?$/.test(value);

function isTimestamp(value: string): boolean {
  const [, day = '', time = ''] =
    /^(\d{4}-\d{2}-\d{2})(?:[T ](.+?))?(?:Z|[-+](?:[01]\d|2[0-3]):[0-5]\d)?$/.exec(value) ?? [];
  if (!isDate(day) || !(time === '' || isTime(time.length === 5 ? `${time}:00` : time)))
    return false;
  // In UTC its year may be another one.
  return /^\d{4}-/.test(formatTimestamp(parseTimestamp(value)));
}
