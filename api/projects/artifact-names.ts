import { invalidInput } from '../http/validate.ts';
import { isOneLine } from './text-fields.ts';

/** The largest possible LIMIT_NAME_LENGTH; existing names may be longer than its present value. */
const MAX_NAME = 255;

/** Validates the name of an artifact from a decoded path. Throws `invalid_input`. */
export function readArtifactName(aid: string, max = MAX_NAME): string {
  if (aid !== '' && aid.length <= max && isOneLine(aid)) return aid;
  const problem = `must be 1 to ${max} characters (LIMIT_NAME_LENGTH) of well-formed Unicode without control characters`;
  throw invalidInput(
    [{ field: 'aid', problem }],
    `Escape the name per RFC 3986, a slash in it as %2F. LIMIT_NAME_LENGTH (${max}) sets the limit.`,
  );
}
