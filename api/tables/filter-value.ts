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
      return isInt64(value) ? undefined : 'must be an integer of 64 bits';
    case 'number':
      return isNumber(value) ? undefined : 'must be a number';
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

function isInt64(value: string): boolean {
  if (!/^[-+]?\d{1,20}$/.test(value)) return false;
  const n = BigInt(value.replace('+', ''));
  return n >= -INT64 && n < INT64;
}

const isNumber = (value: string) =>
  /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d{1,3})?$/i.test(value) && Number.isFinite(Number(value));

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
