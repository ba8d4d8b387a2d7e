import type { z } from 'zod';

type Issue = z.core.$ZodRawIssue;

/** What is wrong with a value, as words that follow its name; undefined leaves zod's own. A schema's own words go before. */
export function sayProblem(issue: Issue): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      return issue.input === undefined ? 'must be given' : `must be ${nameType(issue.expected)}`;
    case 'too_small':
      return sayBound(issue.origin, Number(issue.minimum), issue.inclusive === false, 'least');
    case 'too_big':
      return sayBound(issue.origin, Number(issue.maximum), issue.inclusive === false, 'most');
    case 'not_multiple_of':
      return `must be a multiple of ${issue.divisor}`;
    case 'invalid_value':
      if (issue.input === undefined) return 'must be given';
      return `must be ${issue.values.length > 1 ? 'one of ' : ''}${issue.values.map(quote).join(', ')}`;
    case 'invalid_key': {
      const [said] = issue.issues.map(({ message }) => message);
      return said && !said.startsWith('Invalid') ? said : 'is not a valid name';
    }
    case 'invalid_union':
      return issue.input === undefined ? 'must be given' : 'has none of the forms that are allowed';
    default:
      return undefined;
  }
}

const quote = (value: unknown) =>
  typeof value === 'bigint' ? String(value) : JSON.stringify(value);

const TYPES: Record<string, string> = {
  string: 'a string',
  number: 'a number',
  int: 'an integer',
  boolean: 'true or false',
  array: 'an array',
  object: 'an object',
  record: 'an object',
};
const nameType = (expected: string) => TYPES[expected] ?? expected;

/** What is counted of values that have a length. */
const COUNTED: Record<string, string> = { string: 'character', array: 'item' };

function sayBound(
  origin: string,
  bound: number,
  isExclusive: boolean,
  word: 'least' | 'most',
): string {
  const counted = COUNTED[origin];
  if (counted === undefined)
    return isExclusive
      ? `must be ${word === 'least' ? 'more' : 'less'} than ${bound}`
      : `must be at ${word} ${bound}`;
  if (word === 'least' && bound === 1) return 'must not be empty';
  return `must have at ${word} ${bound} ${counted}${bound === 1 ? '' : 's'}`;
}
