import { invalidInput } from '../http/validate.ts';
import { isOneLine, nameText } from './text-fields.ts';

/** The largest possible LIMIT_NAME_LENGTH; existing names may be longer than its present value. */
const MAX_NAME = 255;

/** Browsers and curl resolve such a segment of an address: DELETE of `..` would remove the model. */
const isStep = (name: string) => name === '.' || name === '..';
const STEP_PROBLEM = 'must not be . or ..';

/** The name of a new artifact, in a body. */
export const artifactName = (max: number) =>
  nameText(max).refine(name => !isStep(name), STEP_PROBLEM);

/** Validates the name of an artifact from a decoded path. Throws `invalid_input`. */
export function readArtifactName(aid: string, max = MAX_NAME): string {
  if (aid !== '' && [...aid].length <= max && isOneLine(aid)) return aid;
  const problem = `must be 1 to ${max} characters (LIMIT_NAME_LENGTH) of well-formed Unicode without control characters`;
  throw invalidInput(
    [{ field: 'aid', problem }],
    `Escape the name per RFC 3986, a slash in it as %2F. LIMIT_NAME_LENGTH (${max}) sets the limit.`,
  );
}

/** Like readArtifactName(), for a name that may be new: some existing artifacts have names that new ones must not have. */
export function readNewArtifactName(aid: string, max: number): string {
  if (!isStep(aid)) return readArtifactName(aid, max);
  throw invalidInput([{ field: 'aid', problem: STEP_PROBLEM }], 'Choose another name.');
}
