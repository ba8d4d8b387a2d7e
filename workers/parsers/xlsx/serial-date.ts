import type { DateFormat } from './date-formats.ts';

const MS_PER_DAY = 86_400_000;
/** Day 0 of workbooks by 1900 and by 1904. */
const DAY_0 = { 1900: Date.UTC(1899, 11, 30), 1904: Date.UTC(1904, 0, 1) };
/** The day that does not exist: the system of 1900 has a 29 February 1900, and days before it are one later. */
const LEAP_DAY = 60;
const LAST_DAY = { 1900: 2_958_465, 1904: 2_957_003 };

/**
 * A serial number as its date, time of day or both, in ISO 8601 to the millisecond, which Excel shows; undefined if
 * there is no such day. Null for 0 that is shown as a date, the result of a formula that refers to an empty cell.
 */
export function dateOfSerial(
  serial: number,
  { format, system }: { format: DateFormat; system: 1900 | 1904 },
): string | null | undefined {
  if (serial === 0 && system === 1900 && format !== 'time') return null;
  let day = Math.floor(serial);
  // In the system of 1904 day 0 is a day, too.
  const isTime = day === 0 && (system === 1900 || format === 'time');
  let ms = Math.round((serial - day) * MS_PER_DAY);
  if (ms === MS_PER_DAY) {
    // The end of a day is no other day's time.
    if (isTime) ms--;
    else {
      day++;
      ms = 0;
    }
  }
  if (!(serial >= 0) || day > LAST_DAY[system]) return undefined;
  const time = new Date(ms)
    .toISOString()
    .slice(11, 23)
    .replace(/\.000$/, '');
  if (isTime) return time;
  if (system === 1900 && day === LEAP_DAY) return undefined;
  if (system === 1900 && day < LEAP_DAY) day++;
  const date = new Date(DAY_0[system] + day * MS_PER_DAY).toISOString().slice(0, 10);
  return format === 'date' && ms === 0 ? date : `${date}T${time}`;
}
