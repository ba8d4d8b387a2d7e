import { WindlassError } from '../../shared/errors.ts';
import { isOneLine } from './fields.ts';

const MAX_NAME = 255;

/** The name of an artifact as it is in a path, decoded once; throws `invalid_input`. */
export function readArtifactName(aid: string): string {
  if (aid !== '' && aid.length <= MAX_NAME && isOneLine(aid)) return aid;
  const problem = `must be 1 to ${MAX_NAME} characters of well-formed Unicode without control characters`;
  throw new WindlassError('invalid_input', {
    detail: `Invalid parameters: aid: ${problem}.`,
    hint: 'Escape the name per RFC 3986, a slash in it as %2F.',
    extra: { fields: [{ field: 'aid', problem }] },
  });
}
