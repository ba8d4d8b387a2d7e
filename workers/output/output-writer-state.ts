import { OUTPUT_STREAMS, type OutputOffsets, type OutputStream } from '../../shared/jobs/output.ts';

/** Appended bytes in memory, the batch being stored included, beyond which append() makes its caller wait. */
const MAX_PENDING = 12 << 20;
/** From this size a stream's part of a batch becomes an object; smaller ones would cost too many objects. */
const DIRECT = 1 << 20;
/** Chunk rows of a stream are rolled up into objects of this size. */
export const ROLL_UP = 4 << 20;
/** Or of so many rows, however short: a line a second for a year must not be millions of rows for one removal. */
export const ROLL_UP_ROWS = 1_000;
/** A stream's bytes in chunk rows that block the writer, and with it the run, while the object store is unreachable. */
const MAX_LIVE = 32 << 20;
const RETRY_MS = 2_000;

/**
 * Two activities run side by side. One stores batches, one after the other:
 *
 *     idle → putting → put → committing → idle    large streams of the batch go into objects, then all is committed
 *     idle → committing → idle                    it is small, or the object store is unreachable: all goes into chunk rows
 *     idle ⇄ blocked                              a stream has too much in chunk rows
 *
 * The other rolls chunk rows up. A batch with objects and a roll-up exclude each other, because such an object begins
 * with the chunk rows before it. After a failure nothing begins any more.
 */
export interface OutputWriterState {
  write: 'idle' | 'putting' | 'put' | 'committing' | 'blocked';
  rollingUp: OutputStream | undefined;
  /** Bytes of the batch that is being stored. */
  batch: OutputOffsets;
  /** Streams of the batch that go into objects. */
  direct: OutputStream[];
  /** Bytes committed. */
  stored: OutputOffsets;
  /** Bytes committed that are in chunk rows. */
  live: OutputOffsets;
  /** These chunk rows. */
  rows: OutputOffsets;
  /** The object store or the database was unreachable: no object is put before this time. */
  retryAt: number;
  /** A pause until retryAt was begun. */
  isPausing: boolean;
  failure: { error: unknown } | undefined;
}

/** What the driver does; it answers each effect with one event. */
export type Effect =
  | { type: 'put'; streams: OutputStream[] }
  | { type: 'commit' }
  | { type: 'roll-up'; stream: OutputStream }
  | { type: 'pause'; ms: number };

export type OutputEvent =
  | { type: 'appended' }
  | { type: 'put' }
  /** rows: the new chunk rows of each stream. */
  | { type: 'committed'; rows: OutputOffsets }
  | { type: 'rolled-up'; stream: OutputStream; bytes: number; rows: number }
  | { type: 'paused' }
  /** isTransient: the object store or the database is unreachable. */
  | { type: 'failed'; effect: Effect['type']; error: unknown; isTransient: boolean };

/** The driver's inputs to each step. */
interface Input {
  /** performance.now() */
  now: number;
  /** Bytes appended that are in no batch yet: the next batch takes all of them. */
  buffered: OutputOffsets;
  /** The attempt at the job is over: no object is put any more. */
  isOver: boolean;
}

const NONE: OutputOffsets = { stdout: 0, stderr: 0 };

export function initialState(stored: OutputOffsets, live = NONE, rows = NONE): OutputWriterState {
  return {
    write: 'idle',
    rollingUp: undefined,
    batch: NONE,
    direct: [],
    stored,
    live,
    rows,
    retryAt: 0,
    isPausing: false,
    failure: undefined,
  };
}

/** append() has to wait. */
export const isFull = ({ batch, failure }: OutputWriterState, buffered: OutputOffsets) =>
  !failure && sum(buffered) + sum(batch) > MAX_PENDING;

/** Nothing is under way, and all that was appended is stored or never will be. */
export const isSettled = (
  { write, rollingUp, failure }: OutputWriterState,
  buffered: OutputOffsets,
) => write === 'idle' && !rollingUp && (failure !== undefined || sum(buffered) === 0);

/** The state after an event, and the effects that begin with it. */
export function step(
  before: OutputWriterState,
  event: OutputEvent,
  input: Input,
): { state: OutputWriterState; effects: Effect[] } {
  const state = { ...before };
  apply(state, event, input);
  return { state, effects: begin(state, input) };
}

function apply(state: OutputWriterState, event: OutputEvent, input: Input): void {
  switch (event.type) {
    case 'appended':
      return;
    case 'put':
      state.write = 'put';
      return;
    case 'committed':
      for (const stream of OUTPUT_STREAMS) {
        const bytes = state.batch[stream];
        const isDirect = state.direct.includes(stream);
        state.stored = add(state.stored, stream, bytes);
        state.live = add(state.live, stream, isDirect ? -state.live[stream] : bytes);
        state.rows = add(state.rows, stream, isDirect ? -state.rows[stream] : event.rows[stream]);
      }
      state.write = 'idle';
      state.batch = NONE;
      state.direct = [];
      return;
    case 'rolled-up': {
      const { stream, bytes, rows } = event;
      // 0: an earlier roll-up was committed after all, and its answer lost.
      const without = (before: number, gone: number) =>
        bytes === 0 ? 0 : Math.max(before - gone, 0);
      state.live = { ...state.live, [stream]: without(state.live[stream], bytes) };
      state.rows = { ...state.rows, [stream]: without(state.rows[stream], rows) };
      state.rollingUp = undefined;
      return;
    }
    case 'paused':
      state.isPausing = false;
      return;
    case 'failed':
      fail(state, event, input);
  }
}

/** Without the object store batches go into chunk rows and roll-ups pause; any other failure is final. */
function fail(
  state: OutputWriterState,
  { effect, error, isTransient }: OutputEvent & { type: 'failed' },
  { now, isOver }: Input,
): void {
  const isFinal = effect === 'commit' || !(isTransient || isOver);
  if (isFinal) state.failure ??= { error };
  else state.retryAt = now + RETRY_MS;
  if (effect === 'roll-up') state.rollingUp = undefined;
  else state.write = isFinal ? 'idle' : 'put';
  if (effect === 'put') state.direct = [];
}

/** Moves the state on as far as it goes without an event. */
function begin(state: OutputWriterState, { now, isOver, buffered }: Input): Effect[] {
  const effects: Effect[] = [];
  const isIdle = () => state.write === 'idle' || state.write === 'blocked';
  if (state.failure) {
    if (isIdle()) state.write = 'idle';
    return effects;
  }
  if (state.write === 'put') {
    state.write = 'committing';
    effects.push({ type: 'commit' });
  }
  const mayPut = !isOver && now >= state.retryAt;
  if (mayPut && !state.rollingUp && state.direct.length === 0) {
    state.rollingUp = OUTPUT_STREAMS.find(
      stream => state.live[stream] >= ROLL_UP || state.rows[stream] >= ROLL_UP_ROWS,
    );
    if (state.rollingUp) effects.push({ type: 'roll-up', stream: state.rollingUp });
  }
  if (!isIdle()) return effects;
  const isBlocked = !isOver && OUTPUT_STREAMS.some(stream => state.live[stream] >= MAX_LIVE);
  state.write = isBlocked ? 'blocked' : 'idle';
  if (isBlocked) {
    if (state.rollingUp || state.isPausing) return effects;
    state.isPausing = true;
    effects.push({ type: 'pause', ms: state.retryAt - now });
  } else if (sum(buffered) > 0) {
    const direct = mayPut ? OUTPUT_STREAMS.filter(stream => buffered[stream] >= DIRECT) : [];
    if (direct.length > 0 && state.rollingUp) return effects;
    state.batch = { ...buffered };
    state.direct = direct;
    state.write = direct.length > 0 ? 'putting' : 'committing';
    effects.push(direct.length > 0 ? { type: 'put', streams: direct } : { type: 'commit' });
  }
  return effects;
}

const sum = ({ stdout, stderr }: OutputOffsets) => stdout + stderr;
const add = (offsets: OutputOffsets, stream: OutputStream, bytes: number): OutputOffsets => ({
  ...offsets,
  [stream]: offsets[stream] + bytes,
});
