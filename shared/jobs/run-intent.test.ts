import { expect, test } from 'vitest';
import {
  effectIntended,
  intentWithdrawn,
  isPlainExec,
  mayBeLeft,
  mayRunOnHost,
  runEndLost,
  runSent,
  submissionIntended,
  submissionMade,
  wasSentElsewhere,
  whatWasLost,
} from './run-intent.ts';

const NOTHING = { runAt: null, runPlace: null, runRemoved: false };
const row = (kind: string, ...writes: object[]) =>
  Object.assign({ kind, ...NOTHING }, ...writes) as typeof NOTHING & { kind: string };

test('a run that was sent may be on its host until its end is lost or its files are removed', () => {
  const sent = row('command', runSent('boot fences'));
  expect([mayRunOnHost(sent), mayBeLeft(sent), whatWasLost(sent)]).toEqual([true, true, undefined]);
  expect(wasSentElsewhere(sent, 'boot fences')).toBe(false);
  expect(wasSentElsewhere(sent, 'another fences')).toBe(true);
  const lost = row('command', runEndLost(sent));
  expect([mayRunOnHost(lost), mayBeLeft(lost), whatWasLost(lost)]).toEqual([false, false, 'end']);
});

test('a command without an agent leaves nothing, and cannot be followed', () => {
  const begun = row('command', effectIntended());
  expect([mayBeLeft(begun), whatWasLost(begun), isPlainExec(begun)]).toEqual([
    false,
    'plain exec',
    true,
  ]);
  const withdrawn = row('command', begun, intentWithdrawn);
  expect(withdrawn).toEqual(row('command'));
  expect(whatWasLost(withdrawn)).toBe(undefined);
});

test('a batch job may run once its directory is recorded, and may leave files before', () => {
  const intended = row('batch', submissionIntended());
  expect([mayBeLeft(intended), mayRunOnHost(intended)]).toEqual([true, false]);
  expect(mayRunOnHost(row('batch', intended, submissionMade('job-1')))).toBe(true);
});
