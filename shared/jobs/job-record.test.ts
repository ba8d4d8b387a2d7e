import { expect, test } from 'vitest';
import { type JobSummary, messageOf, toJobRecord } from './job-record.ts';
import type { BatchState } from './payloads/batch.ts';

const batch: BatchState = {
  engine: 'slurm',
  id: '133',
  state: 'PENDING',
  reason: 'PartitionDown',
  nodes: null,
  phase: 'pending',
  overFor: 0,
};
const row = {
  state: 'queued',
  message: null,
  batch,
  finished: null,
  cancelRequested: null,
  result: null,
};
const of = (changed: object) => ({ ...row, ...changed }) as unknown as JobSummary;

test('a batch job that waits says why, in the words of its batch system', () => {
  expect(messageOf(of({}))).toBe('job 133 of slurm: PENDING, PartitionDown');
  expect(messageOf(of({ message: 'its own' }))).toBe('its own');
  for (const changed of [
    { state: 'running' },
    { finished: new Date() },
    { batch: null },
    { batch: { ...batch, id: null } },
  ])
    expect(messageOf(of(changed))).toBeNull();
});

test('that the batch system does not answer is said of waiting and of running jobs', () => {
  const away = { ...batch, unanswered: 'Unable to contact slurm controller' };
  for (const state of ['queued', 'running'])
    expect(messageOf(of({ state, batch: away }))).toBe(
      'waiting: the batch system does not answer: Unable to contact slurm controller',
    );
});

test('of a cancelled job that its batch system does not answer about it is said that it is being cancelled', () => {
  const away = { ...batch, unanswered: 'Unable to contact slurm controller' };
  for (const state of ['queued', 'running'])
    expect(messageOf(of({ state, batch: away, cancelRequested: new Date() }))).toBe(
      'being cancelled: the batch system does not answer: Unable to contact slurm controller',
    );
});

test('an ended job keeps no state of its batch system that is not final', () => {
  const viewOf = (phase: BatchState['phase']) =>
    toJobRecord(of({ finished: new Date(), batch: { ...batch, phase } })).batch;
  expect(viewOf('running')).toMatchObject({ id: '133', state: null, reason: null });
  expect(viewOf('stopped')).toMatchObject({ state: 'PENDING', reason: 'PartitionDown' });
});
