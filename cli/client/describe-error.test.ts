import { expect, test } from 'vitest';
import { WindlassError } from '../../clients/typescript/src/error.ts';
import { CommandError } from '../command-error.ts';
import { describe } from './describe-error.ts';

test('what was said in several lines is one line', () => {
  const detail = 'The batch system refused the job: invalid partition\nsubmission failed\n';
  const error = new WindlassError({ code: 'batch_refused', detail, hint: 'Correct it.' });
  expect(describe(error)).toBe(
    'The batch system refused the job: invalid partition submission failed Correct it.',
  );
  expect(describe(new CommandError('a: not\nfound.'))).toBe('a: not found.');
});
