import type { LostCause, RunEvent, UnsureEnd } from '../host-agent/protocol/run-event.ts';
import type { StopAnswer } from '../host-agent/protocol/stop-answer.ts';

/**
 * Where a run stands for this worker:
 * - `connecting`: no agent answers; `isRequested` tells whether the run may exist on the host
 * - `recordingIntent`: the commit that the host may be asked is under way
 * - `requesting`, `following`: the agent was asked to run it, or to follow a run that may exist; events are read
 * - `withdrawing`: the host does not know an unwanted run; the answer to the stop is awaited
 * - `settling`: the run ended during a stop, whose answer tells which came first
 * - `over`: `outcome` is set, for this connection or for good
 */
export type Phase =
  | 'connecting'
  | 'recordingIntent'
  | 'requesting'
  | 'following'
  | 'withdrawing'
  | 'settling'
  | 'over';

export interface RunEnd {
  /** Exit status; 128 + n for a signal. */
  code: number;
  stdoutBytes: number;
  stderrBytes: number;
}

export type RunOutcome =
  | ({ type: 'ended' } & RunEnd)
  | { type: 'limit'; hasNeverRun?: true }
  | { type: 'diskFull' | 'noRecord' | 'unreachable' | 'release' }
  | { type: 'cancelled'; but?: 'groupOnly' | 'unseen' | 'unconfirmed' | 'unreachable' }
  | { type: 'lost'; cause?: LostCause | undefined; unsure?: UnsureEnd | undefined }
  | { type: 'wrongNode'; node: string }
  | { type: 'reconnect'; why: string };

export interface RunState {
  phase: Phase;
  /** The intent is recorded: the host may have been asked for the run. */
  isRequested: boolean;
  isCancelled: boolean;
  /** The run must be stopped for a limit of its caller. */
  isLimited: boolean;
  /** Whether this is the host, on the boot, that was asked first: if it has no record, the run never started. */
  isSamePlace: boolean;
  /** Whether the run may also be requested there again. */
  mayRepeat: boolean;
  /** The stop request over this connection. */
  stop: 'none' | 'sent' | 'answered';
  /** The host stopped the run, or may have: its answer was lost. */
  mayBeStopped: boolean;
  /** The host could stop the run's process group only. */
  isGroupOnly: boolean;
  /** Connections that reached another node than the run's. */
  wrongNodes: number;
  end?: RunEnd;
  outcome?: RunOutcome;
}

/** The inputs of the state machine: events of the host, the client, and this worker's connection. */
export type RunInput =
  | Exclude<RunEvent, { type: 'output' | 'running' | 'crowded' }>
  | { type: 'connected'; isSamePlace: boolean; mayRepeat: boolean }
  | { type: 'intentRecorded' | 'cancel' | 'limit' | 'stopFailed' | 'disconnected' }
  | ({ type: 'stopAnswered' } & StopAnswer)
  /** The host has not stopped the run within the stop deadline. */
  | { type: 'stopOverdue' }
  /** The host stayed unreachable for as long as a connection is tried; `isTooLong`: for hours. */
  | { type: 'unreachable'; isTooLong: boolean };

/**
 * - `stop`: ask the agent to stop the run. `close`: close the connection; the next try opens another
 * - `boundOutput`: the host has stopped what it could, so little output may follow
 * - `ignoreOutput`: something does not end, and output is no sign that it will
 */
export type Effect = 'stop' | 'close' | 'boundOutput' | 'ignoreOutput';

export interface Step {
  state: RunState;
  effects: Effect[];
}

/** Connections that may reach a wrong node before the run is given up. */
const MAX_WRONG_NODES = 5;

type Transitions = {
  [T in RunInput['type']]?: (state: RunState, input: Extract<RunInput, { type: T }>) => Step;
};

const go = (state: RunState, change: Partial<RunState>, ...effects: Effect[]): Step => ({
  state: { ...state, ...change },
  effects,
});
const finish = (state: RunState, outcome: RunOutcome, ...effects: Effect[]): Step =>
  go(state, { phase: 'over', outcome }, ...effects);

const isUnwanted = ({ isCancelled, isLimited }: RunState) => isCancelled || isLimited;

/** The outcome of an unwanted run: its limit, unless the client cancelled it. */
const unwantedBut = (
  { isCancelled, isLimited }: RunState,
  but?: Extract<RunOutcome, { type: 'cancelled' }>['but'],
): RunOutcome => {
  if (isLimited && !isCancelled) return { type: 'limit' };
  return but ? { type: 'cancelled', but } : { type: 'cancelled' };
};

/** The outcome of an unwanted run that this host has no record of. */
const unrecorded = (state: RunState): RunOutcome =>
  unwantedBut(state, state.isSamePlace ? undefined : 'unseen');

/** Like unrecorded(); `hasNeverRun` where this host guarantees that the run never started nor will. */
const neverRun = (state: RunState): RunOutcome => {
  const outcome = unrecorded(state);
  const isSure = outcome.type === 'limit' && state.mayRepeat;
  return isSure ? { ...outcome, hasNeverRun: true } : outcome;
};

/** The outcome of a run that the host did not stop in time. */
const givenUp = (state: RunState): RunOutcome =>
  unwantedBut(state, state.isRequested ? 'unconfirmed' : undefined);

/** The outcome of a run that ended: its own end, unless it was stopped before. */
const endOf = (state: RunState): RunOutcome => {
  if (state.end && !state.mayBeStopped) return { type: 'ended', ...state.end };
  return unwantedBut(state, state.isGroupOnly ? 'groupOnly' : undefined);
};

/** In every phase: remembers whether the run is wanted; a lost connection leads back to `connecting`. */
const ALWAYS: Transitions = {
  cancel: state => go(state, { isCancelled: true }),
  limit: state => go(state, { isLimited: true }),
  disconnected: ({ end: _, outcome: __, ...state }) => {
    const mayBeStopped = state.mayBeStopped || state.stop === 'sent';
    const fresh = { phase: 'connecting', stop: 'none', isGroupOnly: false } as const;
    return go(state, { ...fresh, mayBeStopped });
  },
  unreachable: (state, { isTooLong }) => {
    if (state.isCancelled) return finish(state, { type: 'cancelled', but: 'unreachable' });
    return finish(state, { type: isTooLong ? 'unreachable' : 'release' });
  },
};

/** While nothing was asked over this connection. */
const BEFORE: Transitions = {
  ...ALWAYS,
  stopOverdue: state => finish(state, givenUp(state), 'close'),
};

const stopWanted = (change: Partial<RunState>) => (state: RunState) =>
  state.stop === 'none' ? go(state, { ...change, stop: 'sent' }, 'stop') : go(state, change);

/** While the run's events are read. */
const WATCHED: Transitions = {
  ...BEFORE,
  cancel: stopWanted({ isCancelled: true }),
  limit: stopWanted({ isLimited: true }),
  stopped: state => finish(state, neverRun(state)),
  lost: (state, { cause, unsure }) => {
    // It ended, for it was stopped: nobody needs to know how.
    if (unsure && state.mayBeStopped) return finish(state, endOf(state));
    return finish(state, { type: 'lost', cause, unsure });
  },
  ended: (state, { type: _, diskFull, ...end }) => {
    if (diskFull) return finish(state, { type: 'diskFull' });
    if (state.stop === 'sent') return go(state, { phase: 'settling', end });
    return finish(state, endOf({ ...state, end }));
  },
  stopAnswered: (state, { result, node = 'another' }) => {
    const answered: RunState = { ...state, stop: 'answered' };
    // The end may come over another connection, after which a stop finds the run ended.
    if (result === 'ended') return go(answered, {});
    if (result === 'wrong_node') {
      const wrongNodes = state.wrongNodes + 1;
      const outcome: RunOutcome =
        wrongNodes < MAX_WRONG_NODES
          ? { type: 'reconnect', why: `The run is on another node: ${node}.` }
          : { type: 'wrongNode', node };
      return finish({ ...answered, wrongNodes }, outcome, 'close');
    }
    const stopped = { ...answered, mayBeStopped: true, isGroupOnly: result === 'group_killed' };
    if (result !== 'survivors') return go(stopped, {}, 'boundOutput');
    // A run that does not end may print beyond any limit.
    if (state.isLimited) return finish(stopped, { type: 'limit' }, 'close');
    return go(stopped, {}, 'ignoreOutput', 'boundOutput');
  },
  stopFailed: state => finish({ ...state, mayBeStopped: true }, NO_ANSWER, 'close'),
};

const NO_ANSWER: RunOutcome = {
  type: 'reconnect',
  why: 'The host did not say whether it stopped the run.',
};

/** The host has no record of a run that it was asked to follow. */
const onNoRecord = (state: RunState): Step => {
  if (!state.isCancelled && !state.mayRepeat) return finish(state, { type: 'noRecord' });
  if (!isUnwanted(state)) return go(state, { phase: 'requesting' });
  return state.stop === 'sent'
    ? go(state, { phase: 'withdrawing' })
    : finish(state, unrecorded(state));
};

const TRANSITIONS: Record<Phase, Transitions> = {
  connecting: {
    ...BEFORE,
    connected: (before, { isSamePlace, mayRepeat }) => {
      const state = { ...before, isSamePlace, mayRepeat };
      if (state.isRequested && isUnwanted(state))
        return go(state, { phase: 'following', stop: 'sent' }, 'stop');
      if (state.isRequested) return go(state, { phase: 'following' });
      if (isUnwanted(state)) return finish(state, givenUp(state));
      return go(state, { phase: 'recordingIntent' });
    },
  },
  recordingIntent: {
    ...BEFORE,
    intentRecorded: state => {
      if (isUnwanted(state)) return finish({ ...state, isRequested: true }, givenUp(state));
      return go(state, { phase: 'requesting', isRequested: true });
    },
  },
  requesting: {
    ...WATCHED,
    // Another attempt has started it, or the agent knows of none: its record tells.
    taken: state => go(state, { phase: 'following' }),
    absent: state => go(state, { phase: 'following' }),
  },
  following: { ...WATCHED, taken: onNoRecord, absent: onNoRecord },
  withdrawing: {
    ...BEFORE,
    stopAnswered: (state, { result }) => {
      // A late request may have come before the stop.
      const hasRun = result !== 'never_started' && result !== 'stopped';
      const outcome = hasRun ? unrecorded(state) : neverRun(state);
      return finish({ ...state, stop: 'answered' }, outcome);
    },
    stopFailed: state => finish({ ...state, mayBeStopped: true }, NO_ANSWER, 'close'),
  },
  settling: {
    ...ALWAYS,
    stopAnswered: (state, answer) => {
      const isStopped = answer.result !== 'ended' && answer.result !== 'wrong_node';
      const mayBeStopped = state.mayBeStopped || isStopped;
      const isGroupOnly = answer.result === 'group_killed';
      return finish(state, endOf({ ...state, mayBeStopped, isGroupOnly }));
    },
    stopFailed: state => finish(state, endOf({ ...state, mayBeStopped: true })),
    stopOverdue: state => finish(state, endOf({ ...state, mayBeStopped: true }), 'close'),
  },
  over: ALWAYS,
};

/** Where a run stands before the first connection of this attempt. */
export const beginRun = ({ isRequested }: Pick<RunState, 'isRequested'>): RunState => ({
  phase: 'connecting',
  isRequested,
  isCancelled: false,
  isLimited: false,
  isSamePlace: true,
  mayRepeat: true,
  stop: 'none',
  mayBeStopped: false,
  isGroupOnly: false,
  wrongNodes: 0,
});

/** The next state and the effects to perform. A phase ignores inputs that it does not list. */
export function transition(state: RunState, input: RunInput): Step {
  const step = TRANSITIONS[state.phase][input.type] as
    | ((state: RunState, input: RunInput) => Step)
    | undefined;
  return step?.(state, input) ?? { state, effects: [] };
}
