import { expect, test } from 'vitest';
import { type HistoryEvent, hadTrouble, timeIn, toAttempts, toSegments } from './history.ts';

const at = (seconds: number, event: HistoryEvent['event'], worker?: string): HistoryEvent => ({
  time: new Date(seconds * 1_000).toISOString(),
  event,
  worker,
});
const phases = (events: HistoryEvent[], now = 100) =>
  toSegments(events, now * 1_000).map(({ phase, from, to, worker }) =>
    [phase, from / 1_000, to / 1_000, worker].filter(part => part !== undefined),
  );

test('a job waits, and then it runs', () => {
  expect(phases([at(0, 'queued')])).toEqual([['waiting', 0, 100]]);
  const events = [at(0, 'queued'), at(2, 'claimed', 'a'), at(3, 'sent'), at(9, 'ended', 'a')];
  expect(phases(events)).toEqual([
    ['waiting', 0, 2],
    ['running', 2, 9, 'a'],
  ]);
  expect(hadTrouble(events)).toBe(false);
});

test('a worker is lost, another one takes the job, and its host becomes unreachable and comes back', () => {
  const events = [
    at(0, 'queued'),
    at(1, 'claimed', 'a'),
    at(11, 'lease_lost', 'a'),
    at(12, 'claimed', 'b'),
    at(20, 'host_unreachable', 'b'),
    at(50, 'reconnected', 'c'),
    at(60, 'cancel_requested'),
    at(61, 'ended', 'c'),
  ];
  expect(phases(events)).toEqual([
    ['waiting', 0, 1],
    ['running', 1, 11, 'a'],
    ['waiting', 11, 12],
    ['running', 12, 20, 'b'],
    ['unreachable', 20, 50],
    ['running', 50, 61, 'c'],
  ]);
  const segments = toSegments(events, 0);
  expect(timeIn(segments, 'running')).toBe((10 + 8 + 11) * 1_000);
  expect(timeIn(segments, 'waiting')).toBe(2_000);
  expect(hadTrouble(events)).toBe(true);
});

test('a job that ends before any worker had it has waited', () => {
  expect(phases([at(0, 'queued'), at(4, 'cancel_requested'), at(4, 'ended')])).toEqual([
    ['waiting', 0, 4],
  ]);
});

test('a job ends as its record says, where its history does not tell the end yet', () => {
  const events = [at(0, 'queued'), at(2, 'claimed', 'a'), at(3, 'sent')];
  const [, ran] = toSegments(events, 100_000, new Date(9_000).toISOString());
  expect(ran).toMatchObject({ phase: 'running', from: 2_000, to: 9_000 });
});

test('each worker that had a job is an attempt, through all times in which its host was unreachable', () => {
  const events = [
    ...[at(0, 'queued'), at(1, 'claimed', 'a'), at(4, 'host_unreachable', 'a')],
    ...[at(6, 'reconnected', 'a'), at(11, 'lease_lost', 'a'), at(12, 'claimed', 'b')],
  ];
  const attempts = (more: HistoryEvent[], isEnded: boolean) =>
    toAttempts(toSegments([...events, ...more], 30_000), isEnded).map(
      ({ worker, from, to, end }) => [worker, from / 1_000, to / 1_000, end],
    );
  expect(attempts([], false)).toEqual([
    ['a', 1, 11, 'lost'],
    ['b', 12, 30, 'open'],
  ]);
  expect(attempts([at(20, 'ended', 'b')], true).at(-1)).toEqual(['b', 12, 20, 'last']);
  expect(toAttempts(toSegments([at(0, 'queued')], 9_000), false)).toEqual([]);
});
