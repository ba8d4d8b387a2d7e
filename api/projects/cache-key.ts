import { checkCacheKey, MAX_KEY_LENGTH } from '../../shared/projects/cache-entry.ts';
import { invalidInput } from '../http/validate.ts';

/** Validates a key of a project's cache. Throws `invalid_input`. */
export function readCacheKey(key: string, max = MAX_KEY_LENGTH): string {
  const problem = checkCacheKey(key, max);
  if (problem === undefined) return key;
  throw invalidInput(
    [{ field: 'key', problem }],
    `Correct the named fields. LIMIT_KEY_LENGTH (${max}) sets how long a key may be.`,
  );
}
