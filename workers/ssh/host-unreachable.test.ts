import { expect, test } from 'vitest';
import { type ErrorCode, WindlassError } from '../../shared/errors/errors.ts';
import { ReleaseJob } from '../engine/release-job.ts';
import { comeBackLater, findUnreachableSince } from './host-unreachable.ts';

test('a login ends no outage where the agent cannot start after it', () => {
  const found = new Date('2026-01-01');
  const since = (code: ErrorCode) => findUnreachableSince(null, new WindlassError(code), found);
  expect(since('agent_startup_failed')).toBe(found);
  expect(since('startup_files_print')).toBe(found);
  expect(since('remote_connection_failed')).not.toBe(found);
  expect(since('reconnect_required')).not.toBe(found);
});

test('a job whose host is unreachable is released, and given up after 12 h', () => {
  const givenUp = new Error('given up');
  const after = (hours: number) => {
    const since = new Date(Date.now() - hours * 3_600_000);
    return { since, error: comeBackLater(since, 10, () => givenUp) };
  };
  const { since, error } = after(11.9);
  expect(error).toBeInstanceOf(ReleaseJob);
  expect(error).toMatchObject({ forSeconds: 10, set: { unreachableSince: since } });
  expect(after(12.1).error).toBe(givenUp);
});
