import { describe, expect, test } from 'vitest';
import { type Action, decide, type Known } from './decide.ts';
import type { ExitRecord, SubmissionState } from './submission-state.ts';

const files: SubmissionState = { isGone: false, submit: 'called', start: 'open', answer: 0 };
const known: Known = {
  files,
  id: '7',
  phase: undefined,
  wasSeen: true,
  overFor: 0,
  overSeconds: 0,
  endSeconds: 0,
  isUnwanted: false,
};
const end: ExitRecord = { code: 0, stdout: 1, stderr: 2, wasToldToEnd: false };

type Change = Partial<Omit<Known, 'files'>> & { files?: Partial<SubmissionState> };
const next = (change: Change): Action =>
  decide({ ...known, ...change, files: { ...files, ...change.files } });
const type = (change: Change) => next(change).type;

describe('submitting', () => {
  test('once: what was asked for is not asked for again', () => {
    expect(type({ id: null, files: { submit: 'open' } })).toBe('submit');
    expect(type({ id: null, files: { answer: undefined } })).toBe('wait');
  });

  test('in doubt it is looked for by its name, and never submitted again before it is revoked', () => {
    for (const answer of [0, 1, 'overdue'] as const)
      expect(type({ id: null, files: { answer } })).toBe('find');
    expect(next({ id: null, files: { answer: 1, start: 'revoked' } })).toEqual({
      type: 'fail',
      why: 'refused',
    });
    expect(type({ id: null, files: { answer: 'overdue', start: 'revoked' } })).toBe('again');
  });

  test('of all that may be known, only a revoked submission is followed by another', () => {
    const again = everything().filter(change => type(change) === 'again');
    expect([...new Set(again.map(({ files: its }) => its?.start))]).toEqual(['revoked']);
    const followed = again.filter(({ id }) => id !== null);
    expect([...new Set(followed.map(({ wasSeen }) => wasSeen))]).toEqual([false]);
  });
});

describe('following', () => {
  test('it waits as long as nothing says that it is over', () => {
    for (const phase of ['pending', 'running', undefined] as const)
      for (const start of ['open', 'begun'] as const)
        expect(type({ phase, files: { start } })).toBe('wait');
    expect(type({ phase: 'absent', overFor: 1 })).toBe('wait');
  });

  test('its own record of its end holds where its batch system says no other', () => {
    for (const phase of ['ended', 'absent'] as const)
      expect(next({ phase, files: { start: 'begun', end } })).toEqual({ type: 'finish', end });
    expect(next({ id: null, files: { start: 'begun', end } })).toEqual({ type: 'finish', end });
    const nowhere = { ...end, code: 'cwd' } as const;
    expect(type({ phase: 'stopped', files: { start: 'begun', end: nowhere } })).toBe('finish');
    const failed = { ...end, code: 3 };
    for (const phase of ['running', 'stopped', undefined] as const)
      expect(next({ phase, isUnwanted: true, files: { start: 'begun', end: failed } })).toEqual({
        type: 'finish',
        end: failed,
      });
  });

  test('what its batch system ended has failed, also with an exit status of its own', () => {
    for (const code of [0, 3])
      expect(next({ phase: 'stopped', files: { start: 'begun', end: { ...end, code } } })).toEqual({
        type: 'fail',
        why: 'ended',
      });
  });

  test('an end that its batch system has not judged yet waits for that, and not for ever', () => {
    const files = { start: 'begun', end } as const;
    for (const phase of ['pending', 'running', undefined] as const) {
      expect(type({ phase, files, endSeconds: 29 })).toBe('wait');
      expect(type({ phase, files, endSeconds: 30 })).toBe('finish');
    }
  });

  test('a signal may be of its batch system, which is asked', () => {
    for (const signalled of [
      { ...end, code: 143 },
      { ...end, wasToldToEnd: true },
    ]) {
      const its = { files: { start: 'begun', end: signalled } } as const;
      expect(type({ ...its, phase: 'running' })).toBe('wait');
      expect(next({ ...its, phase: 'stopped' })).toEqual({ type: 'fail', why: 'ended' });
      expect(type({ ...its, phase: 'ended' })).toBe('finish');
      expect(type({ ...its, phase: 'absent', overFor: 1 })).toBe('wait');
    }
  });

  test('what its batch system ended and started again has failed, whatever it says of the empty second run', () => {
    const its = { phase: 'ended', overFor: 2 } as const;
    const started = (change: Partial<ExitRecord>) =>
      ({ start: 'begun', wasStartedAgain: true, end: { ...end, ...change } }) as const;
    for (const change of [
      { wasToldToEnd: true },
      { code: 143, wasToldToEnd: true },
      { code: 137 },
    ]) {
      const files = started(change);
      expect(next({ ...its, files })).toEqual({ type: 'fail', why: 'restarted' });
      expect(type({ ...its, phase: 'pending', files })).toBe('fail');
      expect(type({ ...its, id: null, files })).toBe('fail');
      expect(type({ ...its, files, isUnwanted: true })).toBe('stopped');
    }
    // Its batch system had lost its end, and not made it.
    expect(type({ ...its, files: started({}) })).toBe('finish');
    expect(type({ ...its, files: started({ code: 'cwd' }) })).toBe('finish');
  });

  test('what its batch system killed and started again has failed as that, without a record of its end', () => {
    const files = { start: 'begun', wasStartedAgain: true } as const;
    const its = { overFor: 2, overSeconds: 120, files } as const;
    for (const phase of ['ended', 'stopped'] as const)
      expect(next({ ...its, phase })).toEqual({ type: 'fail', why: 'restarted' });
    // An end that its batch system had lost may show late.
    expect(type({ ...its, phase: 'ended', overSeconds: 119 })).toBe('wait');
    // Nobody ended it where its batch system lost it.
    expect(next({ ...its, phase: 'absent' })).toEqual({ type: 'fail', why: 'forgotten' });
  });

  test('by a signal, with an id that may be of another job, it is asked for by its name', () => {
    const files = { start: 'begun', end: { ...end, code: 143, wasToldToEnd: true } } as const;
    const its = { phase: 'absent', wasSeen: false, overFor: 2, files } as const;
    expect(type({ ...its, overSeconds: 119 })).toBe('find');
    expect(type({ ...its, overSeconds: 120 })).toBe('fail');
  });

  test('by a signal, before its id is known, it is asked for by its name', () => {
    const its = { id: null, files: { start: 'begun', end: { ...end, code: 139 } } } as const;
    expect(type(its)).toBe('find');
    expect(type({ ...its, phase: 'absent', overFor: 1 })).toBe('find');
    expect(type({ ...its, phase: 'absent', overFor: 2 })).toBe('finish');
    expect(type({ ...its, isUnwanted: true })).toBe('stopped');
  });

  test('without a record its batch system says how it ended, or nobody knows', () => {
    const its = { overFor: 2, overSeconds: 120, files: { start: 'begun' } } as const;
    for (const phase of ['ended', 'stopped'] as const)
      expect(next({ ...its, phase })).toEqual({ type: 'fail', why: 'ended' });
    expect(next({ ...its, phase: 'absent' })).toEqual({ type: 'fail', why: 'forgotten' });
  });

  test('for a record that may be seen late it waits, and not where the batch system ended it', () => {
    const its = { overFor: 2, overSeconds: 119, files: { start: 'begun' } } as const;
    for (const phase of ['ended', 'absent'] as const) expect(type({ ...its, phase })).toBe('wait');
    expect(next({ ...its, phase: 'stopped' })).toEqual({ type: 'fail', why: 'ended' });
  });

  test('one that its batch system never had is revoked before it begins, then submitted again', () => {
    const its = { phase: 'absent', wasSeen: false, overFor: 2 } as const;
    // Its id may be another number that was printed: it is asked for by its name, then revoked.
    expect(type(its)).toBe('find');
    expect(type({ ...its, files: { start: 'revoked' } })).toBe('again');
  });

  test('an id that its batch system never knew ends nothing before the job is asked for by its name', () => {
    const its = { phase: 'absent', wasSeen: false, overFor: 2 } as const;
    const begun = { ...its, files: { start: 'begun' } } as const;
    for (const isUnwanted of [false, true]) {
      expect(type({ ...begun, isUnwanted, overSeconds: 119 })).toBe('find');
      expect(next({ ...begun, isUnwanted, overSeconds: 120 })).toEqual({
        type: 'fail',
        why: 'forgotten',
      });
    }
    expect(type({ ...its, isUnwanted: true, files: { start: 'revoked' } })).toBe('find');
    const files = { start: 'revoked', submit: 'withdrawn' } as const;
    expect(type({ ...its, isUnwanted: true, files })).toBe('stopped');
  });

  test('one that its batch system had, and no longer knows, may have been cancelled there: it is revoked and over', () => {
    const its = { phase: 'absent', wasSeen: true, overFor: 2 } as const;
    expect(type(its)).toBe('revoke');
    expect(next({ ...its, files: { start: 'revoked' } })).toEqual({
      type: 'fail',
      why: 'vanished',
    });
  });

  test('one that is over before it has begun is revoked, and has failed', () => {
    expect(next({ phase: 'ended', overFor: 2, files: { start: 'revoked' } })).toEqual({
      type: 'fail',
      why: 'unbegun',
    });
    expect(next({ phase: 'stopped', overFor: 2, files: { start: 'revoked' } })).toEqual({
      type: 'fail',
      why: 'ended',
    });
  });
});

describe('cancelling', () => {
  test('what was not submitted never is', () => {
    expect(type({ isUnwanted: true, id: null, files: { submit: 'open' } })).toBe('withdraw');
    expect(
      type({ isUnwanted: true, id: null, files: { submit: 'withdrawn', start: 'revoked' } }),
    ).toBe('stopped');
  });

  test('what was is revoked, cancelled there, and over when its batch system says so', () => {
    const unwanted = { isUnwanted: true };
    expect(type({ ...unwanted, phase: 'pending' })).toBe('withdraw');
    const its = { ...unwanted, files: { start: 'revoked' } } as const;
    expect(type({ ...its, phase: 'pending' })).toBe('cancel');
    expect(type({ ...its, phase: undefined })).toBe('cancel');
    expect(type({ ...its, phase: 'absent', overFor: 1 })).toBe('cancel');
    expect(type({ ...its, phase: 'absent', overFor: 2 })).toBe('stopped');
    expect(type({ ...its, phase: 'stopped' })).toBe('stopped');
    expect(type({ ...its, id: null })).toBe('find');
  });

  test('one that has begun, and that its batch system does not know, is not over: it may run on', () => {
    const files = { start: 'begun' } as const;
    const its = { isUnwanted: true, phase: 'absent', overFor: 2, files } as const;
    expect(type({ ...its, overSeconds: 119 })).toBe('cancel');
    expect(next({ ...its, overSeconds: 120 })).toEqual({ type: 'fail', why: 'forgotten' });
    expect(type({ ...its, phase: 'stopped' })).toBe('stopped');
    expect(type({ ...its, files: { ...files, end: { ...end, code: 143 } } })).toBe('stopped');
  });

  test('one whose id was never learnt is looked for no longer than one that is wanted', () => {
    const its = { isUnwanted: true, id: null, phase: 'absent' } as const;
    const lookedFor = (overFor: number, start: 'begun' | 'revoked') =>
      next({ ...its, overFor, files: { start } });
    expect(lookedFor(23, 'begun')).toEqual({ type: 'find' });
    expect(lookedFor(24, 'begun')).toEqual({ type: 'fail', why: 'forgotten' });
    expect(lookedFor(24, 'revoked')).toEqual({ type: 'stopped' });
  });
});

test('a directory that is gone is no reason to submit anything', () => {
  const types = everything().map(change =>
    type({ ...change, files: { ...change.files, isGone: true } }),
  );
  expect([...new Set(types)]).toEqual(['fail']);
});

function everything(): Change[] {
  const all: Change[] = [];
  for (const submit of ['open', 'called', 'withdrawn'] as const)
    for (const start of ['open', 'begun', 'revoked'] as const)
      for (const answer of [undefined, 0, 1, 'overdue'] as const)
        for (const id of [null, '7'])
          for (const phase of [
            'pending',
            'running',
            'ended',
            'stopped',
            'absent',
            undefined,
          ] as const)
            for (const overFor of [0, 1, 2])
              for (const isUnwanted of [false, true])
                for (const wasSeen of [false, true]) {
                  const files = { submit, start, answer };
                  all.push({ files, id, phase, overFor, isUnwanted, wasSeen });
                }
  return all;
}
