import { expect, test } from 'vitest';
import { applyPoll, type Followed } from './apply-poll.ts';
import { type BatchStatus, Statuses } from './engine.ts';
import type { Poll } from './login-node.ts';
import { parseSizes, parseStates } from './submission-state.ts';

const job: Followed = {
  id: 'job',
  directory: 'job-1',
  batch: {
    engine: 'slurm',
    id: '7',
    state: 'RUNNING',
    reason: null,
    nodes: 'n1',
    phase: 'running',
    overFor: 0,
  },
  state: 'running',
  stored: { stdout: 5, stderr: 0 },
};
const status: BatchStatus = {
  id: '7',
  token: 'windlass-job-1',
  state: 'RUNNING',
  reason: null,
  nodes: 'n1',
  phase: 'running',
};
const poll = ({ statuses, lines = '' }: { statuses?: BatchStatus[]; lines?: string }): Poll => ({
  submissions: parseStates(`at job-1 there asked begun - 0\n${lines}`),
  sizes: parseSizes(`bytes 5 /home/a b/.windlass/batch/job-1/out\n${lines}`),
  statuses: statuses && new Statuses(statuses),
});

test('nothing new is nothing to write', () => {
  expect(applyPoll(job, poll({ statuses: [status] }))).toBeUndefined();
  expect(applyPoll(job, poll({}))).toBeUndefined();
});

test('where the batch system does not answer, nothing it said before changes', () => {
  const over = { ...job, batch: { ...job.batch, overFor: 1 } };
  expect(applyPoll(over, poll({}))).toBeUndefined();
});

test('since when it is over is kept from the first word of it to the last', () => {
  const since = (overFor: number, overSince?: string) => {
    const its = { ...job, batch: { ...job.batch, overFor, ...(overSince ? { overSince } : {}) } };
    return applyPoll(its, poll({ statuses: [] }), { now: new Date(1_000) })?.batch.overSince;
  };
  expect(since(0)).toBe(new Date(1_000).toISOString());
  expect(since(1, 'before')).toBe('before');
  // Written by a release that did not note it.
  expect(since(1)).toBe(new Date(1_000).toISOString());
  const wasOver = { ...job, batch: { ...job.batch, overFor: 2, overSince: 'before' } };
  expect(applyPoll(wasOver, poll({ statuses: [status] }))?.batch).toEqual(job.batch);
});

test('how its batch system ended it holds when that forgets it, or has its id for another', () => {
  for (const phase of ['ended', 'stopped'] as const)
    for (const statuses of [[], [{ ...status, token: null }]]) {
      const its = { ...job.batch, phase, state: 'NODE_FAIL', overFor: 1, overSince: 'before' };
      const forgets = applyPoll({ ...job, batch: its }, poll({ statuses }));
      expect(forgets).toMatchObject({ batch: { ...its, overFor: 2 }, wakes: true });
    }
  // One that it started again is not over.
  const its = { ...job.batch, phase: 'stopped', overFor: 1, overSince: 'before' } as const;
  const again = { ...status, state: 'PENDING', phase: 'pending' } as const;
  expect(applyPoll({ ...job, batch: its }, poll({ statuses: [again] }))?.batch).toMatchObject({
    phase: 'pending',
    overFor: 0,
  });
});

test('its words are kept as they are, and a state that is not known says nothing', () => {
  const odd = { ...status, state: 'SHINY', reason: 'Why', phase: undefined };
  const { batch, wakes } = applyPoll(job, poll({ statuses: [odd] })) ?? {};
  expect(batch).toEqual({
    engine: 'slurm',
    id: '7',
    state: 'SHINY',
    reason: 'Why',
    nodes: 'n1',
    overFor: 0,
  });
  expect(wakes).toBe(false);
});

test('of an id that has a name of nobody’s now nothing follows: the job may have been renamed', () => {
  const over = { ...job, batch: { ...job.batch, phase: 'absent', overFor: 1 } as const };
  const { phase: _, ...words } = job.batch;
  for (const its of [job, over])
    expect(applyPoll(its, poll({ statuses: [{ ...status, token: null }] }))).toMatchObject({
      batch: words,
      wakes: false,
    });
});

test('an id that was never the job’s is not, whoever has it: it may be another number that was printed', () => {
  const unseen = { ...job.batch, state: null, nodes: null, phase: undefined };
  for (const token of [null, 'windlass-other-1']) {
    const polled = poll({ statuses: [{ ...status, token }] });
    expect(applyPoll({ ...job, batch: unseen }, polled)?.batch).toMatchObject({
      phase: 'absent',
      overFor: 1,
      state: null,
    });
  }
});

test('an id that another job has now is not the job’s', () => {
  const others = [{ ...status, token: 'windlass-other-1' }];
  expect(applyPoll(job, poll({ statuses: others }))?.batch).toMatchObject({
    phase: 'absent',
    overFor: 1,
    state: 'RUNNING',
  });
});

test('that the batch system does not answer is kept until it answers', () => {
  const unanswered = 'Unable to contact slurm controller';
  const away = applyPoll(job, { ...poll({}), unanswered })?.batch;
  expect(away).toEqual({ ...job.batch, unanswered });
  const back = applyPoll({ ...job, batch: away ?? job.batch }, poll({ statuses: [status] }));
  expect(back?.batch).toEqual(job.batch);
});

test('no worker is woken for what the disk of the service has no room for', () => {
  const ended = poll({
    lines: 'at job-1 there asked begun 0.5.0 0\nbytes 6 /h/.windlass/batch/job-1/out\n',
  });
  expect(applyPoll(job, ended)?.wakes).toBe(true);
  expect(applyPoll(job, ended, { hasRoom: false })?.wakes ?? false).toBe(false);
});

test('a worker is woken by output, by an end, and by the second word that it is over', () => {
  const wakes = (given: Parameters<typeof poll>[0], its = job) =>
    applyPoll(its, poll(given))?.wakes ?? false;
  expect(wakes({ lines: 'bytes 6 /h/.windlass/batch/job-1/out\n' })).toBe(true);
  expect(wakes({ lines: 'at job-1 there asked begun 0.5.0 0\n' })).toBe(true);
  expect(wakes({ lines: 'at job-1 gone - - - -\n' })).toBe(true);
  expect(wakes({ statuses: [] })).toBe(false);
  const over = { phase: 'absent', overSince: 'before' } as const;
  expect(wakes({ statuses: [] }, { ...job, batch: { ...job.batch, ...over, overFor: 1 } })).toBe(
    true,
  );
  expect(wakes({ statuses: [] }, { ...job, batch: { ...job.batch, ...over, overFor: 2 } })).toBe(
    false,
  );
});

test('one that is looked for is followed by the id of its name, with what is said of it', () => {
  for (const id of [null, '4711']) {
    const its = { ...job.batch, id, phase: 'absent', overFor: 2, search: 'due' } as const;
    const found = applyPoll({ ...job, batch: its }, poll({ statuses: [status] }));
    expect(found).toMatchObject({ batch: { id: '7', phase: 'running', overFor: 0 }, wakes: true });
    expect(found?.batch.search).toBeUndefined();
  }
});

test('a worker is woken once as a search finds none, and as it has found none for long', () => {
  const begin = { ...job.batch, id: null, phase: undefined, search: 'due' } as const;
  let its: Followed = { ...job, batch: begin };
  const woken: number[] = [];
  for (let n = 1; n <= 30; n++) {
    const change = applyPoll(its, poll({ statuses: [] }));
    if (change?.wakes) woken.push(n);
    its = { ...its, batch: change?.batch ?? its.batch };
  }
  expect(woken).toEqual([1, 2, 24]);
  expect(its.batch).toMatchObject({ id: null, phase: 'absent', search: 'none', overFor: 30 });
});

test('a worker is woken as its batch system does not answer about one to be ended, and as that is over', () => {
  const its = { ...job, batch: { ...job.batch, isUnwanted: true } as const };
  const away = applyPoll(its, { ...poll({}), unanswered: 'no answer' });
  expect(away?.wakes).toBe(true);
  const still = { ...its, batch: away?.batch ?? its.batch };
  expect(applyPoll(still, { ...poll({}), unanswered: 'no answer' })?.wakes ?? false).toBe(false);
  const over = { ...status, state: 'CANCELLED', phase: 'stopped' } as const;
  expect(applyPoll(its, poll({ statuses: [over] }))?.wakes).toBe(true);
  expect(applyPoll(job, poll({ statuses: [over] }))?.wakes).toBe(false);
});
