import { expect, test } from 'vitest';
import { describeFailure } from './errors.ts';

const job = { engine: 'slurm', id: '7', nodes: null, overFor: 2 } as const;

test.each([
  ['unbegun', 'FAILED', 'BadConstraints', 'Ask for less'],
  ['unbegun', 'FAILED', 'JobLaunchFailure', '--input'],
  ['unbegun', 'FAILED', 'NonZeroExitCode', '~/.windlass/batch'],
  ['vanished', 'PENDING', 'Priority', 'Submit it again if it is wanted'],
  ['restarted', 'COMPLETED', null, 'submit it again'],
  ['unbegun', 'COMPLETED', null, '~/.windlass/batch'],
  ['ended', 'PREEMPTED', null, 'Submit it again'],
  ['ended', 'NODE_FAIL', null, 'Submit it again'],
  ['ended', 'CANCELLED', null, 'Somebody cancelled it there'],
  ['ended', 'TIMEOUT', 'TimeLimit', 'more time'],
  ['ended', 'OUT_OF_MEMORY', 'OutOfMemory', 'more memory'],
] as const)('a job that is %s as %s, %s has a hint that fits', (why, state, reason, hint) => {
  expect(describeFailure(why, { ...job, state, reason }, false).hint).toContain(hint);
});
