import { findKeyProblem } from '../../shared/cache-entry.ts';
import { WindlassError } from '../../shared/errors.ts';

/** A key of a project's cache; throws `invalid_input`. */
export function readCacheKey(key: string): string {
  const problem = findKeyProblem(key);
  if (problem === undefined) return key;
  throw new WindlassError('invalid_input', {
    detail: `Invalid parameters: key: ${problem}.`,
    hint: 'Correct the named fields.',
    extra: { fields: [{ field: 'key', problem }] },
  });
}
