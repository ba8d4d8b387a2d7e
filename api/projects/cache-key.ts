import {
  checkCacheKey,
  checkNewCacheKey,
  MAX_KEY_LENGTH,
} from '../../shared/projects/cache-entry.ts';
import { invalidInput } from '../http/validate.ts';

/** Validates the key of an entry that may be there. Throws `invalid_input`. */
export const readCacheKey = (key: string): string =>
  refuse(key, checkCacheKey(key, MAX_KEY_LENGTH), MAX_KEY_LENGTH);

/** Validates the key of a new entry. Throws `invalid_input`. */
export const readNewCacheKey = (key: string, max: number): string =>
  refuse(key, checkNewCacheKey(key, max), max);

function refuse(key: string, problem: string | undefined, max: number): string {
  if (problem === undefined) return key;
  throw invalidInput(
    [{ field: 'key', problem }],
    `Correct the named fields. LIMIT_KEY_LENGTH (${max}) sets how long a key may be.`,
  );
}
