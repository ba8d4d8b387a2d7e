import { expect, test } from 'vitest';
import type { OutputOffsets } from '../../shared/jobs/output.ts';
import {
  type Effect,
  initialState,
  isFull,
  isSettled,
  type OutputEvent,
  type OutputWriterState,
  step,
} from './output-writer-state.ts';

const MiB = 1 << 20;
const out = (stdout: number) => ({ stdout, stderr: 0 });
const err = (stderr: number) => ({ stdout: 0, stderr });
const idle = initialState(out(0));
const NOW = 10_000;
const APPENDED: OutputEvent = { type: 'appended' };
const COMMITTED: OutputEvent = { type: 'committed', rows: out(0) };

const failed = (effect: Effect['type'], isTransient: boolean): OutputEvent => ({
  type: 'failed',
  effect,
  error: 'why',
  isTransient,
});

/** A row: in this state, after this event, these fields have changed and these effects begin. */
interface Row {
  given?: Partial<OutputWriterState>;
  /** Default: nothing. */
  buffered?: OutputOffsets;
  event: OutputEvent;
  /** The attempt at the job is over. */
  isOver?: boolean;
  expected: Partial<OutputWriterState>;
  effects?: Effect[];
}

const rows: Record<string, Row> = {
  'a small append is committed to chunk rows at once': {
    buffered: out(5),
    event: APPENDED,
    expected: { write: 'committing', batch: out(5) },
    effects: [{ type: 'commit' }],
  },
  'a large one goes into an object': {
    buffered: out(MiB),
    event: APPENDED,
    expected: { write: 'putting', batch: out(MiB), direct: ['stdout'] },
    effects: [{ type: 'put', streams: ['stdout'] }],
  },
  'of a batch of both streams only the large one goes into an object': {
    given: { write: 'committing', batch: out(1) },
    buffered: { stdout: MiB, stderr: 5 },
    event: COMMITTED,
    expected: {
      write: 'putting',
      stored: out(1),
      live: out(1),
      batch: { stdout: MiB, stderr: 5 },
      direct: ['stdout'],
    },
    effects: [{ type: 'put', streams: ['stdout'] }],
  },
  'what comes while a batch is put is buffered': {
    given: { write: 'putting', batch: out(MiB), direct: ['stdout'] },
    buffered: err(5),
    event: APPENDED,
    expected: {},
  },
  'what comes while a batch is committed is buffered': {
    given: { write: 'committing', batch: out(5) },
    buffered: out(3),
    event: APPENDED,
    expected: {},
  },
  'objects that are put are committed': {
    given: { write: 'putting', batch: out(MiB), direct: ['stdout'] },
    event: { type: 'put' },
    expected: { write: 'committing' },
    effects: [{ type: 'commit' }],
  },
  'committed chunk rows are live': {
    given: { write: 'committing', batch: out(5), stored: out(7), live: out(2) },
    event: COMMITTED,
    expected: { write: 'idle', batch: out(0), stored: out(12), live: out(7) },
  },
  'a committed object holds the chunk rows before it too': {
    given: {
      write: 'committing',
      batch: { stdout: MiB, stderr: 5 },
      direct: ['stdout'],
      stored: { stdout: 7, stderr: 1 },
      live: { stdout: 7, stderr: 1 },
    },
    event: COMMITTED,
    expected: {
      write: 'idle',
      batch: out(0),
      direct: [],
      stored: { stdout: MiB + 7, stderr: 6 },
      live: err(6),
    },
  },
  'a commit is followed by the next batch': {
    given: { write: 'committing', batch: out(5) },
    buffered: out(6),
    event: COMMITTED,
    expected: { batch: out(6), stored: out(5), live: out(5) },
    effects: [{ type: 'commit' }],
  },
  'chunk rows of 4 MiB are rolled up': {
    given: { write: 'committing', batch: out(1), live: out(4 * MiB - 1) },
    event: COMMITTED,
    expected: {
      write: 'idle',
      batch: out(0),
      stored: out(1),
      live: out(4 * MiB),
      rollingUp: 'stdout',
    },
    effects: [{ type: 'roll-up', stream: 'stdout' }],
  },
  'so are 1,000 of them, however short': {
    given: { write: 'committing', batch: out(1), live: out(1_001), rows: out(999) },
    event: { type: 'committed', rows: { stdout: 1, stderr: 2 } },
    expected: {
      write: 'idle',
      batch: out(0),
      stored: out(1),
      live: out(1_002),
      rows: { stdout: 1_000, stderr: 2 },
      rollingUp: 'stdout',
    },
    effects: [{ type: 'roll-up', stream: 'stdout' }],
  },
  'those that came meanwhile stay': {
    given: { rollingUp: 'stdout', live: out(1_050), rows: { stdout: 1_020, stderr: 2 } },
    event: { type: 'rolled-up', stream: 'stdout', bytes: 1_000, rows: 1_000 },
    expected: { rollingUp: undefined, live: out(50), rows: { stdout: 20, stderr: 2 } },
  },
  'an object takes the chunk rows along': {
    given: {
      write: 'committing',
      batch: { stdout: MiB, stderr: 5 },
      direct: ['stdout'],
      live: out(7),
      rows: out(7),
    },
    event: { type: 'committed', rows: err(1) },
    expected: {
      write: 'idle',
      batch: out(0),
      direct: [],
      stored: { stdout: MiB, stderr: 5 },
      live: err(5),
      rows: err(1),
    },
  },
  'a small batch is committed beside a roll-up': {
    given: { rollingUp: 'stdout', live: out(4 * MiB) },
    buffered: out(5),
    event: APPENDED,
    expected: { write: 'committing', batch: out(5) },
    effects: [{ type: 'commit' }],
  },
  'a large one waits for it': {
    given: { rollingUp: 'stderr', live: err(4 * MiB) },
    buffered: out(MiB),
    event: APPENDED,
    expected: {},
  },
  'and begins at its end': {
    given: { rollingUp: 'stdout', live: out(4 * MiB + 3) },
    buffered: out(MiB),
    event: { type: 'rolled-up', stream: 'stdout', bytes: 4 * MiB, rows: 0 },
    expected: {
      rollingUp: undefined,
      live: out(3),
      write: 'putting',
      batch: out(MiB),
      direct: ['stdout'],
    },
    effects: [{ type: 'put', streams: ['stdout'] }],
  },
  'a roll-up is followed by the next, of either stream': {
    given: { rollingUp: 'stdout', live: { stdout: 5 * MiB, stderr: 6 * MiB } },
    event: { type: 'rolled-up', stream: 'stdout', bytes: 4 * MiB, rows: 0 },
    expected: { rollingUp: 'stderr', live: { stdout: MiB, stderr: 6 * MiB } },
    effects: [{ type: 'roll-up', stream: 'stderr' }],
  },
  'a roll-up that finds nothing was done by an earlier try': {
    given: { rollingUp: 'stdout', live: out(5 * MiB), rows: out(7) },
    event: { type: 'rolled-up', stream: 'stdout', bytes: 0, rows: 0 },
    expected: { rollingUp: undefined, live: out(0), rows: out(0) },
  },
  'no roll-up begins while a batch goes into objects': {
    given: { write: 'committing', direct: ['stdout'], live: { stdout: 4, stderr: 5 * MiB } },
    buffered: out(5),
    event: APPENDED,
    expected: {},
  },
  'without the store a large batch goes into chunk rows': {
    given: { write: 'putting', batch: out(MiB), direct: ['stdout'] },
    event: failed('put', true),
    expected: { write: 'committing', direct: [], retryAt: 12_000 },
    effects: [{ type: 'commit' }],
  },
  'so does the next one, until it is tried again': {
    given: { retryAt: 10_001 },
    buffered: out(2 * MiB),
    event: APPENDED,
    expected: { write: 'committing', batch: out(2 * MiB) },
    effects: [{ type: 'commit' }],
  },
  'then it goes into an object': {
    given: { retryAt: 10_000 },
    buffered: out(2 * MiB),
    event: APPENDED,
    expected: { write: 'putting', batch: out(2 * MiB), direct: ['stdout'] },
    effects: [{ type: 'put', streams: ['stdout'] }],
  },
  'what stayed in chunk rows is rolled up before it': {
    given: { live: out(5 * MiB), retryAt: 10_000 },
    buffered: out(2 * MiB),
    event: APPENDED,
    expected: { rollingUp: 'stdout' },
    effects: [{ type: 'roll-up', stream: 'stdout' }],
  },
  'a roll-up without the store is tried again later': {
    given: { rollingUp: 'stdout', live: out(5 * MiB) },
    event: failed('roll-up', true),
    expected: { rollingUp: undefined, retryAt: 12_000 },
  },
  'with 32 MiB in chunk rows the writer is blocked until the next try': {
    given: { write: 'committing', batch: out(MiB), live: out(31 * MiB), retryAt: 11_000 },
    event: COMMITTED,
    expected: {
      write: 'blocked',
      batch: out(0),
      stored: out(MiB),
      live: out(32 * MiB),
      isPausing: true,
    },
    effects: [{ type: 'pause', ms: 1_000 }],
  },
  'blocked it stores nothing, and pauses once': {
    given: { write: 'blocked', live: out(32 * MiB), retryAt: 11_000, isPausing: true },
    buffered: out(5),
    event: APPENDED,
    expected: {},
  },
  'after the pause it rolls up': {
    given: { write: 'blocked', live: out(32 * MiB), retryAt: 10_000, isPausing: true },
    event: { type: 'paused' },
    expected: { isPausing: false, rollingUp: 'stdout' },
    effects: [{ type: 'roll-up', stream: 'stdout' }],
  },
  'a pause that ended early is begun again': {
    given: { write: 'blocked', live: out(32 * MiB), retryAt: 10_001, isPausing: true },
    event: { type: 'paused' },
    expected: {},
    effects: [{ type: 'pause', ms: 1 }],
  },
  'a roll-up that fails again is followed by a pause': {
    given: { write: 'blocked', live: out(32 * MiB), rollingUp: 'stdout' },
    event: failed('roll-up', true),
    expected: { rollingUp: undefined, retryAt: 12_000, isPausing: true },
    effects: [{ type: 'pause', ms: 2_000 }],
  },
  'a roll-up unblocks it': {
    given: { write: 'blocked', live: out(32 * MiB), rollingUp: 'stdout' },
    buffered: out(5),
    event: { type: 'rolled-up', stream: 'stdout', bytes: 4 * MiB, rows: 0 },
    expected: {
      write: 'committing',
      batch: out(5),
      live: out(28 * MiB),
    },
    effects: [{ type: 'roll-up', stream: 'stdout' }, { type: 'commit' }],
  },
  'the end of the attempt unblocks it': {
    given: {
      write: 'blocked',
      live: out(32 * MiB),
      retryAt: 11_000,
      isPausing: true,
    },
    buffered: out(MiB),
    event: { type: 'paused' },
    isOver: true,
    expected: { write: 'committing', isPausing: false, batch: out(MiB) },
    effects: [{ type: 'commit' }],
  },
  'an object that the end of the attempt interrupts goes into chunk rows': {
    given: { write: 'putting', batch: out(MiB), direct: ['stdout'] },
    event: failed('put', false),
    isOver: true,
    expected: { write: 'committing', direct: [], retryAt: 12_000 },
    effects: [{ type: 'commit' }],
  },
  'a put that fails for good ends it': {
    given: { write: 'putting', batch: out(MiB), direct: ['stdout'] },
    buffered: out(5),
    event: failed('put', false),
    expected: { write: 'idle', direct: [], failure: { error: 'why' } },
  },
  'a commit that fails ends it, whatever the reason': {
    given: { write: 'committing', batch: out(5) },
    buffered: out(5),
    event: failed('commit', true),
    expected: { write: 'idle', failure: { error: 'why' } },
  },
  'a roll-up that fails for good ends it, blocked or not': {
    given: { write: 'blocked', live: out(32 * MiB), rollingUp: 'stdout' },
    event: failed('roll-up', false),
    expected: { write: 'idle', rollingUp: undefined, failure: { error: 'why' } },
  },
  'after a failure a commit under way still counts, and nothing begins': {
    given: { write: 'committing', batch: out(5), failure: { error: 'why' } },
    buffered: out(6),
    event: COMMITTED,
    expected: { write: 'idle', batch: out(0), stored: out(5), live: out(5) },
  },
  'the first failure stays': {
    given: { write: 'committing', batch: out(5), failure: { error: 'first' } },
    event: failed('commit', false),
    expected: { write: 'idle' },
  },
};

test.each(Object.entries(rows))(
  '%s',
  (_, { given, event, buffered = out(0), isOver = false, expected, effects = [] }) => {
    const before = { ...idle, ...given };
    const untouched = structuredClone(before);
    const result = step(before, event, { now: NOW, buffered, isOver });
    expect(result).toEqual({ state: { ...before, ...expected }, effects });
    expect(before).toEqual(untouched);
  },
);

test.each<[string, Partial<OutputWriterState>, OutputOffsets, boolean]>([
  ['12 MiB buffered and being stored', { batch: err(8 * MiB) }, out(4 * MiB), false],
  ['one byte more', { batch: err(8 * MiB) }, out(4 * MiB + 1), true],
  ['the same after a failure', { failure: { error: 'why' } }, out(13 * MiB), false],
])('whether append() waits: %s', (_, given, buffered, waits) => {
  expect(isFull({ ...idle, ...given }, buffered)).toBe(waits);
});

test.each<[string, Partial<OutputWriterState>, OutputOffsets, boolean]>([
  ['at first', {}, out(0), false],
  ['with buffered bytes', {}, err(1), true],
  ['during a commit', { write: 'committing' }, out(0), true],
  ['during a roll-up', { rollingUp: 'stdout' }, out(0), true],
  ['while blocked', { write: 'blocked' }, out(0), true],
  ['after a failure', { failure: { error: 'why' } }, out(1), false],
  ['during a commit after a failure', { write: 'committing', failure: { error: 1 } }, out(1), true],
])('whether flush() waits: %s', (_, given, buffered, waits) => {
  expect(isSettled({ ...idle, ...given }, buffered)).toBe(!waits);
});
