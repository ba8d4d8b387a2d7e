import { expect, test } from 'vitest';
import { WindlassError } from '../../shared/errors/errors.ts';
import { toError } from './run-errors.ts';

const limit = AbortSignal.abort(
  new WindlassError('time_limit', { detail: 'The command ran for 5 s and was stopped.' }),
);

test('of a command that never ran no limit says that it ran', () => {
  const given = { isCancelled: false, limit };
  expect(toError({ type: 'limit' }, given)).toBe(limit.reason);
  expect(toError({ type: 'limit', hasNeverRun: true }, given)).toMatchObject({
    code: 'time_limit',
    message: expect.stringContaining('nothing ran'),
  });
});
