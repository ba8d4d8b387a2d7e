import { checkCacheKey, MAX_KEY_LENGTH } from '../../shared/cache-entry.ts';
import { WindlassError } from '../../shared/errors.ts';

/** Validates a key of a project's cache. Throws `invalid_input`. */
export function readCacheKey(key: string, max = MAX_KEY_LENGTH): string {
  const problem = checkCacheKey(key, max);
  if (problem === undefined) return key;
  throw new WindlassError('invalid_input', {
    detail: `Invalid parameters: key: ${problem}.`,
    hint: `Correct the named fields. LIMIT_KEY_LENGTH (${max}) sets how long a key may be.`,
    extra: { fields: [{ field: 'key', problem }] },
  });
}
