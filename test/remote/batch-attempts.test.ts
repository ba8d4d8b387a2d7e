import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { JobRow } from '../../shared/database/schema.ts';
import { WindlassError } from '../../shared/errors/errors.ts';
import { newId } from '../../shared/ids.ts';
import type { BatchState } from '../../shared/jobs/payloads/batch.ts';
import { applyPoll } from '../../workers/batch/apply-poll.ts';
import { BatchAttempt } from '../../workers/batch/batch-attempt.ts';
import { Statuses } from '../../workers/batch/engine.ts';
import { endUnwanted, toAsk } from '../../workers/batch/engine-requests.ts';
import { LoginNode } from '../../workers/batch/login-node.ts';
import { JobSignals } from '../../workers/engine/job-signals.ts';
import { ReleaseJob } from '../../workers/engine/release-job.ts';
import batchHandler from '../../workers/handlers/batch.ts';
import type { OutputWriter } from '../../workers/output/output-writer.ts';
import type { RemoteSession } from '../../workers/ssh/remote-session.ts';
import { withDatabase } from '../harness/databases/migrated-database.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { LocalExec } from '../harness/hosts/local-exec.ts';
import { makeJobContext } from '../harness/job-context.ts';
import { waitFor } from '../harness/wait-for.ts';

const given = withDatabase('batch-attempts');
const scratch = makeTempDir('batch-attempts');
afterAll(() => scratch.remove());

let home: string;
let job: JobRow;
let stdout: string;

afterEach(() => void vi.restoreAllMocks());

beforeEach(() => {
  home = join(scratch.path, newId());
  mkdirSync(join(home, 'bin'), { recursive: true });
  job = { id: newId(), state: 'queued', runAt: null, session: 's' } as unknown as JobRow;
  stdout = '';
});

/** What a command of the batch system does on the host of the test. */
function offer(program: string, does: string): void {
  const path = join(home, 'bin', program);
  writeFileSync(path, `#!/bin/sh\n${does}\n`);
  chmodSync(path, 0o755);
}

const batch = () => job.batch as BatchState;
const folder = () => join(home, '.windlass/batch', job.runPlace ?? '');
const submissions = () => readdirSync(join(home, '.windlass/batch')).length;

/** One attempt at the job, by a worker of its own; `before` is called before each request to the host. How it ends. */
async function attempt({
  before = () => {},
  prints = '',
  most = 0,
  isCancelled = false,
  isDiskShort = false,
  refused = undefined as WindlassError | undefined,
} = {}): Promise<unknown> {
  const env = { PATH: `${join(home, 'bin')}:/usr/bin:/bin` };
  const host = new LocalExec({ home, shell: '/bin/sh', env });
  const exec = (command: string, signal?: AbortSignal) => {
    before();
    if (host.commands.length > 50) throw new Error('the attempt does not end');
    return host.exec(`printf %s '${prints}'; ${command}`, signal);
  };
  const signals = new JobSignals(new AbortController().signal);
  if (isCancelled) signals.cancel();
  const { signal, cleanupSignal } = signals;
  const output = {
    stored: { stdout: stdout.length, stderr: 0 },
    append: async (_: string, bytes: Buffer) => {
      if (refused) throw refused;
      stdout += bytes.toString();
    },
    flush: async () => {},
    isDiskShort,
    isForDisk: (error: unknown) => error === refused,
  };
  const context = makeJobContext<'batch'>({
    job,
    signal,
    cleanupSignal,
    payload: { command: 'true' },
    worker: { config: { LIMIT_OUTPUT_BYTES: most }, database: given.database() },
  });
  const made = new BatchAttempt(
    context,
    { exec, connectedAt: 0, defaults: {} } as unknown as RemoteSession,
    output as unknown as OutputWriter,
  );
  return made.run().catch((error: unknown) => error);
}

const NOTHING = { stdout: 0, stderr: 0 };

/** A poll of the host, in which its account asks the batch system. */
async function poll(): Promise<void> {
  const env = { PATH: `${join(home, 'bin')}:/usr/bin:/bin` };
  const host = new LocalExec({ home, shell: '/bin/sh', env });
  const node = new LoginNode(host, new AbortController().signal);
  const { id, runPlace, state } = job;
  const directory = runPlace ?? '';
  const followed = { id, directory, batch: batch(), state, stored: NOTHING };
  const polled = await node.poll([directory], 'slurm', toAsk([followed], [], true));
  job.batch = applyPoll(followed, polled)?.batch ?? batch();
  const unwanted = batch().isUnwanted ? [followed] : [];
  await endUnwanted(node, { unwanted, statuses: polled.statuses, seconds: 10 });
}

/** An attempt that leaves something to the poll, the poll, and how the next attempt ends. */
async function attemptTwice(given: Parameters<typeof attempt>[0] = {}): Promise<unknown> {
  expect(await attempt(given)).toBeInstanceOf(ReleaseJob);
  await poll();
  return attempt(given);
}

/** A submission of which these files say where it stands. */
function stand(files: string[], state: Partial<BatchState> = {}): void {
  const none = { id: null, state: null, reason: null, nodes: null, overFor: 0 };
  job.runAt = new Date();
  job.runPlace = `${job.id}-1`;
  job.batch = { engine: 'slurm', ...none, ...state };
  mkdirSync(folder(), { recursive: true });
  for (const file of files) writeFileSync(join(folder(), file), '');
}

test('what a site refuses is a refusal in its words, whatever sbatch adds', async () => {
  offer('sbatch', 'echo "Say a type of GPU." >&2; echo "failed: Unspecified error" >&2; exit 1');
  offer('squeue', 'exit 0');
  expect(await attemptTwice()).toMatchObject({
    code: 'batch_refused',
    message: expect.stringContaining('Say a type of GPU.'),
  });
  expect(submissions()).toBe(1);
});

test('a refusal in very many words is one in some of them', async () => {
  offer('sbatch', 'echo no >&2; exit 1');
  offer('squeue', 'exit 0');
  // A host of its own making sends more than the agent's text asks for.
  offer('head', String.raw`printf 'no\033[2J'; printf %100000s | tr " " x`);
  const end = await attemptTwice();
  expect(end).toMatchObject({
    code: 'batch_refused',
    message: expect.stringContaining('no[2Jxxx'),
  });
  expect((end as WindlassError).message.length).toBeLessThan(2_200);
});

test('a home is none where it has what a terminal would obey, or is very long', async () => {
  const signal = new AbortController().signal;
  const introduce = (path: string) => {
    const host = new LocalExec({ home, shell: '/bin/sh', env: {} });
    const exec = (command: string) => host.exec(`export HOME='${path}'; ${command}`);
    return new LoginNode({ exec }, signal).introduce();
  };
  expect((await introduce('/home/me')).home).toBe('/home/me');
  for (const path of ['/home/\x1b[2J', `/${'x'.repeat(5_000)}`])
    expect((await introduce(path)).home).toBeNull();
});

test('what may pass is tried again less and less often, and is in the end a refusal in its words', async () => {
  offer('sbatch', 'echo "sbatch: error: Socket timed out on send/recv operation" >&2; exit 1');
  offer('squeue', 'exit 0');
  const { end, pauses } = await attemptUntilItsEnd({});
  expect(end).toMatchObject({
    code: 'batch_refused',
    message: expect.stringContaining('Socket timed out on send/recv operation'),
  });
  expect(pauses.filter(pause => pause < 60)).toEqual([5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55]);
  expect(submissions()).toBe(12);
});

/** Makes attempts at the job until it ends, each time after its batch system has said this of what it took. */
async function attemptUntilItsEnd(says: Partial<BatchState>) {
  const pauses: number[] = [];
  for (let n = 0; n < 50; n++) {
    const end = await attempt();
    if (!(end instanceof ReleaseJob)) return { end, pauses };
    pauses.push(end.forSeconds);
    if (batch().id !== null) job.batch = { ...batch(), ...says };
    if (batch().search === 'due') await poll();
  }
  throw new Error('the job does not end');
}

test('one that its batch system forgets each time before it begins is not submitted for ever', async () => {
  offer('sbatch', 'echo 7');
  offer('squeue', 'exit 0');
  const { end, pauses } = await attemptUntilItsEnd({ phase: 'absent', overFor: 2 });
  expect(end).toMatchObject({
    code: 'batch_ended',
    message: expect.stringMatching(/submitted 12 times, and at last .* forgot it .* nothing ran/),
    hint: expect.stringContaining('~/.windlass/batch is there on the compute nodes'),
  });
  expect(pauses.filter(pause => pause < 60)).toEqual([5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55]);
  expect(submissions()).toBe(12);
});

test('one that its batch system had, and knows no more, is not submitted again: somebody may have cancelled it', async () => {
  offer('sbatch', 'echo 7');
  const { end } = await attemptUntilItsEnd({ phase: 'absent', state: 'PENDING', overFor: 2 });
  expect(end).toMatchObject({
    code: 'batch_ended',
    message: expect.stringMatching(/does not know job 7 \(PENDING\) any more, .* nothing ran/),
    hint: expect.stringContaining('Submit it again if it is wanted'),
  });
  expect(submissions()).toBe(1);
});

test('one that was never submitted fails as its login does', async () => {
  // The connection was lost before its directory was recorded.
  job.runAt = new Date();
  const denied = new WindlassError('remote_authentication_failed');
  const { signal, cleanupSignal } = new JobSignals(new AbortController().signal);
  const context = makeJobContext<'batch'>({
    job,
    signal,
    cleanupSignal,
    payload: { command: 'true' },
    worker: { database: given.database(), sessions: { use: () => Promise.reject(denied) } },
    output: async () =>
      ({
        flush: async () => {},
        isDiskShort: false,
        isForDisk: () => false,
      }) as unknown as OutputWriter,
  });
  await expect(batchHandler(context)).rejects.toBe(denied);
});

/** As after a failover to a replica that did not have these records. */
function loseRecords(): void {
  Object.assign(job, { state: 'queued', runAt: null, runPlace: null, batch: null });
}

test('one whose record a failover has lost is not submitted again, but followed to its end', async () => {
  offer('sbatch', 'echo >>"$HOME/calls"; echo 7');
  expect(await attempt()).toBeInstanceOf(ReleaseJob);
  const directory = job.runPlace;
  loseRecords();
  expect(await attempt()).toBeInstanceOf(ReleaseJob);
  expect([job.runPlace, batch().id, submissions()]).toEqual([directory, '7', 1]);
  loseRecords();
  for (const file of ['begun', 'end.3.4.0'])
    writeFileSync(join(home, '.windlass/batch', directory ?? '', file), '');
  writeFileSync(join(home, '.windlass/batch', directory ?? '', 'out'), 'all\n');
  expect(await attempt()).toMatchObject({ code: 3 });
  expect([stdout, readFileSync(join(home, 'calls'), 'utf8')]).toEqual(['all\n', '\n']);
});

test('nor is one of which the record of the submission after a forgotten one is lost', async () => {
  offer('sbatch', 'echo >>"$HOME/calls"; echo 7');
  stand(['asked', 'void', 'answer.0'], { id: '6', phase: 'absent', overFor: 2, submissions: 1 });
  const { runAt, runPlace, batch: before } = job;
  expect(await attempt()).toBeInstanceOf(ReleaseJob);
  expect(await attempt()).toBeInstanceOf(ReleaseJob);
  const second = job.runPlace;
  expect(second).not.toBe(runPlace);
  Object.assign(job, { runAt, runPlace, batch: before });
  expect(await attempt()).toBeInstanceOf(ReleaseJob);
  expect([job.runPlace, submissions()]).toEqual([second, 2]);
  expect(readFileSync(join(home, 'calls'), 'utf8')).toBe('\n');
});

test('one that was not submitted before its record was lost never is', async () => {
  offer('sbatch', 'echo >>"$HOME/calls"; echo 7');
  stand(['ask', 'go', 'request', 'variables']);
  const first = job.runPlace ?? '';
  writeFileSync(join(folder(), 'request'), 'secret');
  loseRecords();
  expect(await attempt()).toBeInstanceOf(ReleaseJob);
  expect(job.runPlace).not.toBe(first);
  const left = readdirSync(join(home, '.windlass/batch', first)).sort();
  expect(left).toEqual(['request', 'variables', 'void', 'withdrawn']);
  expect(readFileSync(join(home, '.windlass/batch', first, 'request'), 'utf8')).toBe('');
});

test('one that is over before it has begun is told so, with where to look', async () => {
  offer('sbatch', 'echo 7');
  const { end } = await attemptUntilItsEnd({ phase: 'ended', state: 'FAILED', overFor: 2 });
  expect(end).toMatchObject({
    code: 'batch_ended',
    message: expect.stringContaining('job 7 (FAILED) was over before it had begun; nothing ran'),
    hint: expect.stringContaining('~/.windlass/batch is there on the compute nodes'),
  });
  expect(submissions()).toBe(1);
});

test('one whose submit command hangs says so, and its host counts as reachable', async () => {
  const [hangs, called] = [join(home, 'hangs'), join(home, 'called')];
  writeFileSync(hangs, '');
  offer('sbatch', `touch ${called}; while [ -e ${hangs} ]; do sleep 0.1; done`);
  const limit = new AbortController();
  vi.spyOn(AbortSignal, 'timeout').mockReturnValue(limit.signal);
  const ends = attempt();
  await waitFor(() => existsSync(called), { what: 'the call', timeoutMs: 60_000 });
  limit.abort();
  expect(await ends).toBeInstanceOf(ReleaseJob);
  rmSync(hangs);
  expect(batch().unanswered).toBe('sbatch has not answered within 180 s');
});

test('one whose submit command never answers is not submitted for ever', async () => {
  offer('squeue', 'exit 0');
  stand(['asked', 'void'], { submissions: 12 });
  utimesSync(join(folder(), 'asked'), 1, 1);
  expect(await attempt()).toMatchObject({
    code: 'batch_refused',
    message: expect.stringContaining('did not answer'),
  });
});

test('one that a signal ended before its id was known is asked for, and ends', async () => {
  offer('squeue', 'exit 0');
  stand(['asked', 'begun', 'answer.0', 'end.139.0.0']);
  expect(await attemptTwice()).toBeInstanceOf(ReleaseJob);
  await poll();
  expect(await attempt()).toMatchObject({ code: 139 });
});

test.each<[string, string[], boolean]>([
  ['waits', ['go'], false],
  ['runs', ['begun'], false],
  ['was cancelled and waits', ['void'], true],
  ['was cancelled and runs', ['begun'], true],
])(
  'one that %s, of which another id was printed, is found by its name',
  async (_, files, isCancelled) => {
    const wrong = { id: '4711', phase: 'absent', overFor: 2, overSince: ago(5) } as const;
    stand(['asked', 'answer.0', ...files], wrong);
    writeFileSync(join(folder(), 'answer.0'), '12\n4711\n');
    offer('squeue', `echo '12|RUNNING|None|n1|windlass-${job.runPlace}|'`);
    offer('scancel', 'echo "$*" >>"$HOME/cancelled"');
    expect(await attemptTwice({ isCancelled })).toBeInstanceOf(ReleaseJob);
    expect(batch()).toMatchObject({ id: '12', phase: 'running', overFor: 0 });
    expect(existsSync(join(folder(), 'void'))).toBe(files[0] === 'void');
    await poll();
    // No id is believed before its batch system has told of the job by it.
    if (isCancelled) expect(readFileSync(join(home, 'cancelled'), 'utf8')).toMatch(/=\S+ 12\n$/);
    else expect(existsSync(join(home, 'cancelled'))).toBe(false);
  },
);

test('one whose batch system does not know its id waits until that answers', async () => {
  offer('squeue', 'echo "Unable to contact slurm controller"; exit 1');
  stand(['asked', 'go', 'answer.0'], { id: '7', phase: 'absent', overFor: 2, overSince: ago(5) });
  expect(await attemptTwice()).toBeInstanceOf(ReleaseJob);
  expect(existsSync(join(folder(), 'go'))).toBe(true);
});

const AWAY = 'echo "Unable to contact slurm controller" >&2; exit 1';

test.each<[string, Partial<BatchState>]>([
  ['waits', { id: '7', phase: 'pending', state: 'PENDING' }],
  ['was just submitted', { id: '7' }],
  ['may have been submitted', {}],
])(
  'one that %s never runs once it was cancelled: it ends though its batch system does not answer',
  async (_, state) => {
    for (const program of ['scancel', 'squeue', 'sacct']) offer(program, AWAY);
    stand(['asked', 'go', 'answer.1'], state);
    expect(await attemptTwice({ isCancelled: true })).toMatchObject({
      code: 'cancelled',
      message: expect.stringMatching(/does not answer.*may still be in its queue/),
      hint: expect.stringContaining('nothing runs'),
    });
    expect(existsSync(join(folder(), 'void'))).toBe(true);
  },
);

test('one that has begun is cancelled until its batch system answers, and tells that it does not', async () => {
  for (const program of ['scancel', 'squeue']) offer(program, AWAY);
  stand(['asked', 'begun', 'answer.0'], { id: '7', phase: 'running', state: 'RUNNING' });
  for (let n = 0; n < 3; n++)
    expect(await attemptTwice({ isCancelled: true })).toBeInstanceOf(ReleaseJob);
  expect(batch().unanswered).toBe('Unable to contact slurm controller');
});

test('one that its batch system answers about is cancelled there, though it does not know the id', async () => {
  offer('squeue', 'echo "slurm_load_jobs error: Invalid job id specified" >&2; exit 1');
  offer('scancel', 'exit 0');
  stand(['asked', 'go', 'answer.0'], { id: '7', phase: 'pending', state: 'PENDING' });
  expect(await attemptTwice({ isCancelled: true })).toBeInstanceOf(ReleaseJob);
  expect(batch().unanswered).toBeUndefined();
});

test('one that is found after it was not is followed as any other', async () => {
  stand(['asked', 'begun', 'answer.1'], { phase: 'absent', overFor: 3 });
  offer('squeue', `echo '12|RUNNING|None|n1|windlass-${job.runPlace}|'`);
  expect(await attemptTwice()).toBeInstanceOf(ReleaseJob);
  expect(batch()).toMatchObject({ id: '12', phase: 'running', overFor: 0 });
  expect(batch().search).toBeUndefined();
});

const ago = (seconds: number) => new Date(Date.now() - seconds * 1_000).toISOString();

/** Lets `seconds` pass for what the job remembers. */
function pass(seconds: number): void {
  const earlier = (time: string) => new Date(Date.parse(time) - seconds * 1_000).toISOString();
  const aged = Object.entries(batch()).map(([name, value]) => [
    name,
    name.endsWith('Since') ? earlier(value) : value,
  ]);
  job.batch = Object.fromEntries(aged);
}

test('one whose record of its end is seen a minute late has ended as that says', async () => {
  const over = { id: '7', phase: 'ended', state: 'COMPLETED', overFor: 2 } as const;
  stand(['asked', 'begun', 'answer.0'], { ...over, overSince: ago(60) });
  expect(await attempt()).toBeInstanceOf(ReleaseJob);
  writeFileSync(join(folder(), 'end.0.0.0'), '');
  expect(await attempt()).toMatchObject({ code: 0 });
});

test.each<[string, Partial<BatchState>, string]>([
  ['for two minutes', { phase: 'ended', overSince: ago(130) }, 'batch_ended'],
  ['for two minutes', { phase: 'absent', overSince: ago(130) }, 'outcome_unknown'],
  ['and was ended from outside', { phase: 'stopped', overSince: ago(5) }, 'batch_ended'],
])('one that is over %s, without a record of its end, has failed', async (_, state, code) => {
  stand(['asked', 'begun', 'answer.0'], { id: '7', overFor: 2, ...state });
  expect(await attempt()).toMatchObject({ code });
});

test('an end that its batch system has not judged waits half a minute for that, and no longer', async () => {
  stand(['asked', 'begun', 'answer.0', 'end.0.0.0'], { id: '7', phase: 'running' });
  for (const seconds of [15, 15]) {
    expect(await attempt()).toMatchObject({ name: 'ReleaseJob', forSeconds: 30 });
    pass(seconds);
  }
  expect(await attempt()).toMatchObject({ code: 0 });
});

test('one that its batch system ended has failed, also where it traps the signal and exits with 0', async () => {
  stand(['asked', 'begun', 'answer.0', 'end.0.0.0'], { id: '7', phase: 'stopped', overFor: 1 });
  expect(await attempt()).toMatchObject({ code: 'batch_ended' });
});

test('one whose output has no room now is attempted again, and ends with all of it', async () => {
  stand(['asked', 'begun', 'answer.0', 'end.0.4.0'], { id: '7', phase: 'ended' });
  writeFileSync(join(folder(), 'out'), 'all\n');
  for (let n = 0; n < 3; n++) {
    expect(await attempt({ isDiskShort: true })).toBeInstanceOf(ReleaseJob);
    expect([stdout, batch().lateSince]).toEqual(['', undefined]);
  }
  expect(await attempt()).toMatchObject({ code: 0 });
  expect(stdout).toBe('all\n');
});

test('one that printed more than there was room for on its node tells how much there is', async () => {
  const over = { id: '7', phase: 'ended', overFor: 2 } as const;
  stand(['asked', 'begun', 'answer.0', 'end.0.9.0'], { ...over, lateSince: ago(130) });
  writeFileSync(join(folder(), 'out'), 'all\n');
  expect(await attempt()).toMatchObject({
    code: 'outcome_unknown',
    message: expect.stringContaining('4 of the 9 bytes that it printed can be read'),
  });
  expect(stdout).toBe('all\n');
});

test('one that was cancelled ends at once, whatever has no room, and is not whole then', async () => {
  const refused = new WindlassError('insufficient_storage');
  for (const lack of [{ isDiskShort: true }, { refused }]) {
    stand(['asked', 'begun', 'answer.0', 'end.0.4.0'], { id: '7', phase: 'running' });
    writeFileSync(join(folder(), 'out'), 'all\n');
    expect(await attempt({ isCancelled: true, ...lack })).toMatchObject({ code: 'cancelled' });
    expect([stdout, batch().lateSince]).toEqual(['', undefined]);
  }
});

test('nor is what a job printed that its batch system ended lost for want of room', async () => {
  stand(['asked', 'begun', 'answer.0'], {
    id: '7',
    phase: 'stopped',
    overFor: 2,
    overSince: ago(5),
  });
  writeFileSync(join(folder(), 'out'), 'all\n');
  expect(await attempt({ isDiskShort: true })).toBeInstanceOf(ReleaseJob);
  expect(await attempt({ isDiskShort: true, isCancelled: true })).toMatchObject({
    code: 'cancelled',
  });
  expect(stdout).toBe('');
  expect(await attempt()).toMatchObject({ code: 'batch_ended' });
  expect(stdout).toBe('all\n');
});

test('a look changes the folder, by which a client of NFS learns what others did there', async () => {
  stand(['asked', 'begun', 'answer.0'], { id: '7', phase: 'running' });
  utimesSync(folder(), 1, 1);
  await attempt();
  expect(statSync(folder()).mtimeMs).toBeGreaterThan(1_000);
  expect(readdirSync(folder()).sort()).toEqual(['answer.0', 'asked', 'begun']);
});

test.each([
  ['before its id is known', null],
  ['whatever its batch system says', '7'],
])('output that stays shorter than its job printed is told after a while, %s', async (_, id) => {
  stand(['asked', 'begun', 'end.0.10.0'], {
    id,
    phase: id ? 'ended' : undefined,
    overFor: id ? 2 : 0,
  });
  writeFileSync(join(folder(), 'out'), '01234');
  expect(await attempt()).toBeInstanceOf(ReleaseJob);
  pass(130);
  expect(await attempt()).toMatchObject({
    code: 'outcome_unknown',
    message: expect.stringContaining('exit status 0, and 5 of the 10 bytes'),
  });
  expect(stdout).toBe('01234');
  appendFileSync(join(folder(), 'out'), '56789');
  expect(await attempt()).toMatchObject({ code: 0 });
});

test('such output is told of a job, too, that its batch system still has', async () => {
  stand(['asked', 'begun', 'end.0.10.0'], { id: '7', phase: 'running' });
  expect(await attempt()).toBeInstanceOf(ReleaseJob);
  pass(30);
  expect(await attempt()).toBeInstanceOf(ReleaseJob);
  const { id, runPlace, state } = job;
  const followed = { id, directory: runPlace ?? '', batch: batch(), state, stored: NOTHING };
  const completing = { state: 'COMPLETING', reason: null, nodes: 'n1', phase: 'running' } as const;
  const statuses = new Statuses([{ ...completing, id: '7', token: `windlass-${runPlace}` }]);
  const poll = { submissions: new Map(), sizes: new Map(), statuses };
  job.batch = applyPoll(followed, poll)?.batch ?? null;
  expect(batch().state).toBe('COMPLETING');
  pass(130);
  expect(await attempt()).toMatchObject({ code: 'outcome_unknown' });
});

test('output is whole that start-up files print before, too, without the end of a line', async () => {
  stand(['asked', 'begun', 'answer.0', 'end.0.10.0'], { id: '7', phase: 'ended' });
  writeFileSync(join(folder(), 'out'), '0123456789');
  expect(await attempt({ prints: 'Welcome, ' })).toMatchObject({ code: 0 });
  expect(stdout).toBe('0123456789');
});

test('one that prints all the time holds no slot', async () => {
  stand(['asked', 'begun', 'answer.0'], { id: '7', phase: 'running' });
  const print = () => appendFileSync(join(folder(), 'out'), '0123456789');
  expect(await attempt({ before: print })).toBeInstanceOf(ReleaseJob);
  expect(stdout).toMatch(/^(0123456789)+$/);
});

test('one that printed too much is ended by the poll after the attempt that reads it', async () => {
  offer('scancel', 'touch "$HOME/cancelled"');
  offer('squeue', `echo '7|RUNNING|None|n1|windlass-${job.id}-1|'`);
  stand(['asked', 'begun', 'answer.0'], { id: '7', phase: 'running' });
  writeFileSync(join(folder(), 'out'), '0123456789');
  expect(await attempt({ most: 9 })).toBeInstanceOf(ReleaseJob);
  await poll();
  expect(existsSync(join(home, 'cancelled'))).toBe(true);
});

test.each<[string, string[], Partial<BatchState>, boolean]>([
  ['submitted', ['ask', 'go'], {}, false],
  ['revoked', ['asked', 'go', 'answer.0'], { id: '7', phase: 'absent', overFor: 2 }, false],
  ['revoked after a refusal', ['asked', 'go', 'answer.1'], {}, false],
  ['withdrawn', ['ask', 'go'], {}, true],
])(
  'in a home that is read-only one that cannot be %s is left for a while',
  async (_, files, state, isCancelled) => {
    offer('mv', 'exit 1');
    offer('squeue', 'exit 0');
    stand(files, state);
    expect(await attemptTwice({ isCancelled })).toMatchObject({
      name: 'ReleaseJob',
      forSeconds: 60,
    });
  },
);
