import { describe, expect, test } from 'vitest';
import type { StopAnswer } from '../host-agent/protocol/stop-answer.ts';
import {
  beginRun,
  type Effect,
  type Phase,
  type RunInput,
  type RunOutcome,
  type RunState,
  transition,
} from './run-state.ts';

const end = { code: 3, stdoutBytes: 5, stderrBytes: 7 };
const ENDED: RunInput = { type: 'ended', ...end, diskFull: false };
const answer = (result: StopAnswer['result'], node?: string): RunInput => ({
  type: 'stopAnswered',
  result,
  ...(node ? { node } : {}),
});
const CONNECTED: RunInput = { type: 'connected', isSamePlace: true, mayRepeat: true };
const EXPIRED: RunInput = { type: 'connected', isSamePlace: true, mayRepeat: false };
const ELSEWHERE: RunInput = { type: 'connected', isSamePlace: false, mayRepeat: false };
const NEVER_RAN = { type: 'limit', hasNeverRun: true } as const;
const RECONNECT = { type: 'reconnect', why: expect.any(String) as string } as const;

const requested: Partial<RunState> = { isRequested: true };
const cancelled: Partial<RunState> = { isCancelled: true };
const limited: Partial<RunState> = { isLimited: true };
/** A stop was sent, and answered so that the run may be stopped. */
const sent: Partial<RunState> = { ...requested, stop: 'sent' };
const stopped: Partial<RunState> = { ...requested, stop: 'answered', mayBeStopped: true };
const elsewhere: Partial<RunState> = { isSamePlace: false, mayRepeat: false };

const at = (phase: Phase, change: Partial<RunState> = {}): RunState => ({
  ...beginRun({ isRequested: false }),
  phase,
  ...change,
});

type TableRow = [
  from: Partial<RunState>,
  input: RunInput,
  to: Phase | 'same' | RunOutcome,
  effects?: Effect[],
  change?: Partial<RunState>,
];

const WATCHED: TableRow[] = [
  // A client that cancels, or a limit, has the host stop it, once for each connection.
  [requested, { type: 'cancel' }, 'same', ['stop'], { isCancelled: true, stop: 'sent' }],
  [requested, { type: 'limit' }, 'same', ['stop'], { isLimited: true, stop: 'sent' }],
  [{ ...sent, ...cancelled }, { type: 'limit' }, 'same', [], { isLimited: true }],
  [{ ...stopped, ...limited }, { type: 'cancel' }, 'same', [], { isCancelled: true }],
  // Ends of the host's own.
  [requested, ENDED, { type: 'ended', ...end }],
  [requested, { ...ENDED, diskFull: true }, { type: 'diskFull' }],
  [requested, { type: 'lost', cause: 'reboot' }, { type: 'lost', cause: 'reboot' }],
  [{ ...sent, ...cancelled }, { type: 'lost' }, { type: 'lost', cause: undefined }],
  [{ ...sent, ...cancelled }, { type: 'stopped' }, { type: 'cancelled' }],
  [
    { ...sent, ...cancelled, ...elsewhere },
    { type: 'stopped' },
    { type: 'cancelled', but: 'unseen' },
  ],
  [{ ...sent, ...limited }, { type: 'stopped' }, NEVER_RAN],
  [{ ...sent, ...limited, ...elsewhere }, { type: 'stopped' }, { type: 'limit' }],
  [{ ...sent, ...limited, ...cancelled }, { type: 'stopped' }, { type: 'cancelled' }],
  // Its end while a stop is under way waits for the answer; after the answer it tells which came first.
  [{ ...sent, ...cancelled }, ENDED, 'settling', [], { end }],
  [{ ...stopped, ...cancelled }, ENDED, { type: 'cancelled' }],
  [{ ...stopped, ...cancelled, isGroupOnly: true }, ENDED, { type: 'cancelled', but: 'groupOnly' }],
  [{ ...stopped, ...limited }, ENDED, { type: 'limit' }],
  [{ ...requested, ...cancelled, stop: 'answered' }, ENDED, { type: 'ended', ...end }],
  // Answers to the stop.
  [
    { ...sent, ...cancelled },
    answer('ended'),
    'same',
    [],
    { stop: 'answered', mayBeStopped: false },
  ],
  [{ ...sent, ...cancelled }, answer('killed'), 'same', ['boundOutput'], stopped],
  [{ ...sent, ...cancelled }, answer('never_started'), 'same', ['boundOutput'], stopped],
  [
    { ...sent, ...cancelled },
    answer('group_killed'),
    'same',
    ['boundOutput'],
    { ...stopped, isGroupOnly: true },
  ],
  [
    { ...sent, ...cancelled },
    answer('survivors'),
    'same',
    ['ignoreOutput', 'boundOutput'],
    stopped,
  ],
  [{ ...sent, ...limited }, answer('survivors'), { type: 'limit' }, ['close']],
  [{ ...sent, ...cancelled }, answer('wrong_node', 'n2'), RECONNECT, ['close'], { wrongNodes: 1 }],
  [{ ...sent, ...limited, wrongNodes: 3 }, answer('wrong_node', 'n2'), RECONNECT, ['close']],
  [
    { ...sent, ...cancelled, wrongNodes: 4 },
    answer('wrong_node', 'n2'),
    { type: 'wrongNode', node: 'n2' },
    ['close'],
  ],
  [{ ...sent, ...cancelled }, { type: 'stopFailed' }, RECONNECT, ['close'], { mayBeStopped: true }],
  [
    { ...sent, ...cancelled },
    { type: 'stopOverdue' },
    { type: 'cancelled', but: 'unconfirmed' },
    ['close'],
  ],
  [{ ...stopped, ...limited }, { type: 'stopOverdue' }, { type: 'limit' }, ['close']],
  [
    { ...stopped, ...limited, ...cancelled },
    { type: 'stopOverdue' },
    { type: 'cancelled', but: 'unconfirmed' },
    ['close'],
  ],
];

/** The whole table: from a phase with these facts, by an input, to a phase (or an outcome, which is `over`). */
const TABLE: Record<Phase, TableRow[]> = {
  connecting: [
    [{}, CONNECTED, 'recordingIntent'],
    [cancelled, CONNECTED, { type: 'cancelled' }],
    [limited, CONNECTED, { type: 'limit' }],
    [{ ...limited, ...cancelled }, CONNECTED, { type: 'cancelled' }],
    [requested, CONNECTED, 'following'],
    [requested, ELSEWHERE, 'following', [], elsewhere],
    [requested, EXPIRED, 'following', [], { isSamePlace: true, mayRepeat: false }],
    [{ ...requested, ...cancelled }, CONNECTED, 'following', ['stop'], { stop: 'sent' }],
    [{ ...requested, ...limited }, CONNECTED, 'following', ['stop'], { stop: 'sent' }],
    [{}, { type: 'cancel' }, 'same', [], cancelled],
    [requested, { type: 'cancel' }, 'same', [], cancelled],
    [requested, { type: 'limit' }, 'same', [], limited],
    [cancelled, { type: 'stopOverdue' }, { type: 'cancelled' }, ['close']],
    [
      { ...requested, ...cancelled },
      { type: 'stopOverdue' },
      { type: 'cancelled', but: 'unconfirmed' },
      ['close'],
    ],
    [{ ...requested, ...limited }, { type: 'stopOverdue' }, { type: 'limit' }, ['close']],
  ],
  recordingIntent: [
    [{}, { type: 'intentRecorded' }, 'requesting', [], requested],
    [cancelled, { type: 'intentRecorded' }, { type: 'cancelled' }, [], requested],
    [limited, { type: 'intentRecorded' }, { type: 'limit' }, [], requested],
    [{}, { type: 'cancel' }, 'same', [], cancelled],
    [{}, { type: 'limit' }, 'same', [], limited],
    [cancelled, { type: 'stopOverdue' }, { type: 'cancelled' }, ['close']],
    [limited, { type: 'stopOverdue' }, { type: 'limit' }, ['close']],
  ],
  requesting: [
    ...WATCHED,
    [requested, { type: 'taken' }, 'following'],
    [requested, { type: 'absent' }, 'following'],
    [{ ...sent, ...cancelled }, { type: 'taken' }, 'following', [], { stop: 'sent' }],
  ],
  following: [
    ...WATCHED,
    // Without a record it was never started where the intent was recorded. Anywhere else nobody knows.
    [requested, { type: 'absent' }, 'requesting'],
    [requested, { type: 'taken' }, 'requesting'],
    [{ ...requested, mayRepeat: false }, { type: 'absent' }, { type: 'noRecord' }],
    [{ ...requested, ...elsewhere }, { type: 'absent' }, { type: 'noRecord' }],
    [{ ...sent, ...limited, ...elsewhere }, { type: 'absent' }, { type: 'noRecord' }],
    // One that must not run must first be refused to a late request: the stop does that.
    [{ ...sent, ...cancelled }, { type: 'absent' }, 'withdrawing'],
    [{ ...sent, ...cancelled, ...elsewhere }, { type: 'absent' }, 'withdrawing'],
    [{ ...sent, ...limited }, { type: 'absent' }, 'withdrawing'],
    [{ ...stopped, ...cancelled }, { type: 'absent' }, { type: 'cancelled' }],
    [
      { ...stopped, ...cancelled, ...elsewhere },
      { type: 'absent' },
      { type: 'cancelled', but: 'unseen' },
    ],
    [{ ...stopped, ...limited }, { type: 'absent' }, { type: 'limit' }],
  ],
  withdrawing: [
    [{ ...sent, ...cancelled }, answer('never_started'), { type: 'cancelled' }],
    [
      { ...sent, ...cancelled, ...elsewhere },
      answer('never_started'),
      { type: 'cancelled', but: 'unseen' },
    ],
    [{ ...sent, ...limited }, answer('never_started'), NEVER_RAN],
    [{ ...sent, ...limited }, answer('killed'), { type: 'limit' }],
    [{ ...sent, ...limited, mayRepeat: false }, answer('never_started'), { type: 'limit' }],
    [
      { ...sent, ...cancelled },
      { type: 'stopFailed' },
      RECONNECT,
      ['close'],
      { mayBeStopped: true },
    ],
    [
      { ...sent, ...cancelled },
      { type: 'stopOverdue' },
      { type: 'cancelled', but: 'unconfirmed' },
      ['close'],
    ],
    [{ ...sent, ...limited }, { type: 'cancel' }, 'same', [], cancelled],
    [{ ...sent, ...cancelled }, { type: 'limit' }, 'same', [], limited],
  ],
  settling: [
    [{ ...sent, ...cancelled, end }, answer('ended'), { type: 'ended', ...end }],
    [{ ...sent, ...cancelled, end }, answer('wrong_node'), { type: 'ended', ...end }],
    [{ ...sent, ...cancelled, end }, answer('killed'), { type: 'cancelled' }],
    [
      { ...sent, ...cancelled, end },
      answer('group_killed'),
      { type: 'cancelled', but: 'groupOnly' },
    ],
    [{ ...sent, ...limited, end }, answer('killed'), { type: 'limit' }],
    [{ ...sent, ...limited, end, mayBeStopped: true }, answer('ended'), { type: 'limit' }],
    [{ ...sent, ...cancelled, end }, { type: 'stopFailed' }, { type: 'cancelled' }],
    [{ ...sent, ...limited, end }, { type: 'stopFailed' }, { type: 'limit' }],
    [{ ...sent, ...cancelled, end }, { type: 'stopOverdue' }, { type: 'cancelled' }, ['close']],
    [{ ...sent, ...limited, end }, { type: 'cancel' }, 'same', [], cancelled],
    [{ ...sent, ...cancelled, end }, { type: 'limit' }, 'same', [], limited],
  ],
  over: [
    [requested, { type: 'cancel' }, 'same', [], cancelled],
    [requested, { type: 'limit' }, 'same', [], limited],
  ],
};

const PHASES = Object.keys(TABLE) as Phase[];
const INPUTS: RunInput[] = [
  CONNECTED,
  ENDED,
  answer('killed'),
  ...(['cancel', 'limit', 'intentRecorded', 'stopFailed', 'disconnected'] as const).map(type => ({
    type,
  })),
  ...(['stopOverdue', 'absent', 'taken', 'stopped', 'lost'] as const).map(type => ({ type })),
  { type: 'unreachable', isTooLong: false },
];
/** In every phase alike; see the tests below. */
const ALIKE = ['disconnected', 'unreachable'];

describe.each(PHASES)('%s', phase => {
  test.each(TABLE[phase])('with %j by %j: %j %j', (from, input, to, effects = [], change = {}) => {
    const step = transition(at(phase, from), input);
    expect(step.effects).toEqual(effects);
    if (typeof to === 'string') {
      expect(step.state.phase).toBe(to === 'same' ? phase : to);
      expect(step.state.outcome).toBeUndefined();
    } else {
      expect(step.state.phase).toBe('over');
      expect(step.state.outcome).toEqual(to);
    }
    expect(step.state).toMatchObject(change);
  });

  test('any other input changes nothing', () => {
    const listed = [...TABLE[phase].map(([, { type }]) => type), ...ALIKE];
    for (const input of INPUTS.filter(({ type }) => !listed.includes(type))) {
      const state = at(phase, requested);
      expect([input.type, transition(state, input)]).toEqual([input.type, { state, effects: [] }]);
    }
  });

  test('a lost connection leads back to connecting; a stop that was not answered may have been done', () => {
    const before = at(phase, { ...sent, ...cancelled, isGroupOnly: true, wrongNodes: 2, end });
    const { state, effects } = transition(
      { ...before, outcome: { type: 'reconnect', why: '' } },
      { type: 'disconnected' },
    );
    expect(effects).toEqual([]);
    expect(state).toEqual(
      at('connecting', { ...requested, ...cancelled, mayBeStopped: true, wrongNodes: 2 }),
    );
    const answered = at(phase, { ...requested, stop: 'answered' });
    expect(transition(answered, { type: 'disconnected' }).state.mayBeStopped).toBe(false);
  });

  test.each<[Partial<RunState>, boolean, RunOutcome]>([
    [requested, false, { type: 'release' }],
    [requested, true, { type: 'unreachable' }],
    [{ ...requested, ...limited }, false, { type: 'release' }],
    [{ ...requested, ...cancelled }, false, { type: 'cancelled', but: 'unreachable' }],
    [{ ...requested, ...cancelled }, true, { type: 'cancelled', but: 'unreachable' }],
  ])('with %j on a host that is unreachable, for too long: %j', (from, isTooLong, outcome) => {
    const { state, effects } = transition(at(phase, from), { type: 'unreachable', isTooLong });
    expect([state.phase, state.outcome, effects]).toEqual(['over', outcome, []]);
  });
});
