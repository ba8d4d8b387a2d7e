import { expect, test } from 'vitest';
import { WindlassError } from '../../shared/errors/errors.ts';
import { awaySince, toError } from './run-errors.ts';

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

test('a login ends no outage where the agent cannot start after it', () => {
  const found = new Date('2026-01-01');
  const since = (
    code: 'agent_startup_failed' | 'remote_connection_failed' | 'reconnect_required',
  ) => awaySince(null, new WindlassError(code), found);
  expect(since('agent_startup_failed')).toBe(found);
  expect(since('remote_connection_failed')).not.toBe(found);
  expect(since('reconnect_required')).not.toBe(found);
});
