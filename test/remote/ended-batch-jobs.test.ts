import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { and, eq, gt, lt, sql } from 'drizzle-orm';
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest';
import { batchPolls, jobs, leftoverRuns, sessions, workers } from '../../shared/database/schema.ts';
import { newId } from '../../shared/ids.ts';
import { removeJobs } from '../../shared/jobs/remove-jobs.ts';
import { abortable } from '../../shared/process/abort.ts';
import { createLog } from '../../shared/process/log.ts';
import { type PollLimits, pollBatchHosts } from '../../workers/batch/poller.ts';
import { endPoll, followHost } from '../../workers/batch/polls.ts';
import { withDatabase } from '../harness/databases/migrated-database.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { LocalExec } from '../harness/hosts/local-exec.ts';
import { waitFor } from '../harness/wait-for.ts';

const given = withDatabase('ended-batch-jobs');
const scratch = makeTempDir('ended-batch-jobs');
afterAll(() => scratch.remove());

let home: string;
let sid: string;
let stop: AbortController;
let polling: Promise<void>;
let channels: number;
let mayUse = true;

beforeEach(async () => {
  home = join(scratch.path, newId());
  mkdirSync(join(home, 'bin'), { recursive: true });
  sid = newId();
  await db()
    .insert(sessions)
    .values({
      sid,
      owner: 'u',
      hostname: sid,
      username: 'u',
      agent: false,
      sealed: Buffer.from('sealed'),
    });
  stop = new AbortController();
});
afterEach(async () => {
  hanging.clear();
  onAsk = async () => {};
  stop.abort();
  rmSync(join(home, 'hangs'), { force: true });
  await polling;
});

const db = () => given.database().db;

/** Sessions whose host does not answer while the test goes on. */
const hanging = new Set<string>();
/** Called before the host is asked. */
let onAsk = async () => {};

/** What a command of the batch system does. */
function offer(program: string, does: string): void {
  const path = join(home, 'bin', program);
  writeFileSync(path, `#!/bin/sh\n${does}\n`);
  chmodSync(path, 0o755);
}

/** What squeue prints: these jobs run, by their ids there. */
const queueOf = (running: Record<string, string>) =>
  Object.entries(running)
    .map(([number, id]) => `echo '${number}|RUNNING|None|n1|windlass-${id}-1|'`)
    .join('\n');

/** A job whose submission stands in the account's home; one that has ended was cancelled. */
/** Where it is not that of the test. */
let sessionOfJob: string | undefined;

async function makeJob(
  id: string,
  {
    hasEnded = false,
    number = '7',
    finished = new Date(),
  }: { hasEnded?: boolean; number?: string | null; finished?: Date } = {},
): Promise<void> {
  const folder = join(home, '.windlass/batch', `${id}-1`);
  mkdirSync(folder, { recursive: true });
  for (const file of ['asked', 'begun']) writeFileSync(join(folder, file), '');
  const batch = {
    engine: 'slurm' as const,
    id: number,
    state: 'RUNNING',
    reason: null,
    nodes: null,
  };
  await db()
    .insert(jobs)
    .values({
      id,
      kind: 'batch',
      queue: 'remote',
      owner: 'u',
      payload: {},
      session: sessionOfJob ?? sid,
      runAt: new Date(),
      runPlace: `${id}-1`,
      batch: { ...batch, overFor: 0 },
      ...(hasEnded ? { state: 'cancelled' as const, finished } : {}),
    });
}

async function removeRecord(id: string): Promise<string[]> {
  return db().transaction(tx => removeJobs(tx, [id]));
}

async function poll(worker = newId(), limits: Partial<PollLimits> = {}): Promise<void> {
  const env = { PATH: `${join(home, 'bin')}:/usr/bin:/bin` };
  const host = new LocalExec({ home, shell: '/bin/sh', env });
  channels = 0;
  const exec = async (command: string, signal?: AbortSignal) => {
    channels++;
    await onAsk();
    return host.exec(command, signal);
  };
  await followHost(db(), sid);
  const context = {
    id: worker,
    database: given.database(),
    stopping: stop.signal,
    log: createLog({ level: 'silent', name: 'test' }),
    notifications: { publish: () => {} },
    freeSpace: { assertFree: async () => {} },
    sessions: {
      async use(of: string, signal: AbortSignal, work: (on: object) => unknown) {
        if (hanging.has(of)) await abortable(new Promise<never>(() => {}), signal);
        return work({ exec });
      },
      mayUse: async () => mayUse,
    },
  };
  polling = pollBatchHosts(context as never, limits);
}

/** The poll of this host is not under way. */
const isDueSoon = (hostname: string) =>
  and(eq(batchPolls.hostname, hostname), lt(batchPolls.due, sql`now() + interval '1 minute'`));

const rowOf = async (id: string) => (await db().select().from(jobs)).find(row => row.id === id);

test('jobs that have ended keep no open one of their account from being looked at', async () => {
  writeFileSync(join(home, 'hangs'), '');
  offer('scancel', 'while [ -e "$HOME/hangs" ]; do sleep 0.1; done');
  const [ended, open] = [newId(), newId()];
  offer('squeue', queueOf({ 7: ended }));
  await makeJob(ended, { hasEnded: true });
  await makeJob(open);
  await poll();
  await waitFor(async () => (await rowOf(open))?.state === 'running', { what: 'the open job' });
  expect((await rowOf(ended))?.runRemoved).toBe(false);
});

test('many that have ended are ended on their host in one call, each as what it is there', async () => {
  offer('scancel', `printf '%s\\n' "$*" >>"$HOME/cancelled"`);
  const ids = Array.from({ length: 20 }, newId);
  const numbers = ids.map((_, n) => String(n + 1));
  const own = Object.fromEntries(ids.map((id, n) => [String(n + 1), id]));
  // The last two are of others: one has an id that was this account's.
  offer('squeue', `echo >>"$HOME/asked"\n${queueOf({ ...own, 20: newId(), 21: newId() })}`);
  for (const [n, id] of ids.entries()) await makeJob(id, { hasEnded: true, number: numbers[n] });
  await poll();
  for (const id of ids)
    await waitFor(async () => (await rowOf(id))?.runRemoved === true, { what: `the end of ${id}` });
  const calls = readFileSync(join(home, 'cancelled'), 'utf8').trimEnd().split('\n');
  expect(calls.map(line => line.split(' ').slice(1).sort())).toEqual([numbers.slice(0, -1).sort()]);
  expect(readFileSync(join(home, 'asked'), 'utf8')).toBe('\n');
  expect(ids.some(id => existsSync(join(home, '.windlass/batch', `${id}-1`)))).toBe(false);
  expect(channels).toBeLessThan(5);
});

test('one that its batch system never ends keeps no other’s files on the host', async () => {
  writeFileSync(join(home, 'hangs'), '');
  offer('scancel', 'while [ -e "$HOME/hangs" ]; do sleep 0.1; done');
  const ids = Array.from({ length: 3 }, newId);
  offer('squeue', queueOf({ 7: ids[0] ?? '' }));
  for (const [n, id] of ids.entries()) await makeJob(id, { hasEnded: true, number: String(n + 7) });
  await poll(newId(), { cancelSeconds: 1 });
  for (const id of ids)
    await waitFor(async () => (await rowOf(id))?.runRemoved === true, { what: `the end of ${id}` });
  expect(readdirSync(join(home, '.windlass/batch'))).toEqual([]);
});

test('of an unknown outcome the files of its own submission stay, and no others', async () => {
  const id = newId();
  await makeJob(id, { hasEnded: true });
  const error = { code: 'outcome_unknown', detail: 'Unknown.' } as const;
  await db().update(jobs).set({ state: 'failed', error }).where(eq(jobs.id, id));
  // Of a worker that was lost before it had recorded it.
  mkdirSync(join(home, '.windlass/batch', `${id}-0`));
  await poll();
  await waitFor(async () => (await rowOf(id))?.runRemoved === true, { what: `the end of ${id}` });
  expect(readdirSync(join(home, '.windlass/batch'))).toEqual([`${id}-1`]);
});

test('the record of a job stays while its files are on its host', async () => {
  offer('squeue', '');
  const id = newId();
  await makeJob(id, { hasEnded: true });
  expect(await removeRecord(id)).toEqual([]);
  await poll();
  await waitFor(async () => (await rowOf(id))?.runRemoved === true, { what: `the end of ${id}` });
  expect(existsSync(join(home, '.windlass/batch', `${id}-1`))).toBe(false);
  expect(await removeRecord(id)).toEqual([id]);
});

test('the record stays while the files of a session that was just closed are to be removed', async () => {
  offer('squeue', '');
  const id = newId();
  await makeJob(id, { hasEnded: true });
  await db().update(sessions).set({ ended: new Date() }).where(eq(sessions.sid, sid));
  expect(await removeRecord(id)).toEqual([]);
  await poll();
  await waitFor(async () => (await rowOf(id))?.runRemoved === true, { what: `the end of ${id}` });
  expect(await removeRecord(id)).toEqual([id]);
});

test('of a session that was closed long ago a record goes, and nothing is left to be swept as a run', async () => {
  const id = newId();
  await makeJob(id, { hasEnded: true });
  await db()
    .update(sessions)
    .set({ ended: new Date(Date.now() - 3_600_000), sealed: null })
    .where(eq(sessions.sid, sid));
  expect(await removeRecord(id)).toEqual([id]);
  expect(await db().select().from(leftoverRuns).where(eq(leftoverRuns.id, id))).toEqual([]);
});

test('where the home is unreachable, files of ended jobs are removed when it is back', async () => {
  offer('squeue', '');
  const id = newId();
  // However long ago: its host may have been down meanwhile.
  await makeJob(id, { hasEnded: true, finished: new Date(Date.now() - 2 * 86_400_000) });
  const folder = join(home, '.windlass');
  renameSync(folder, `${folder}-away`);
  await poll();
  const hasEnded = and(isDueSoon(sid), gt(batchPolls.due, sql`now()`));
  await waitFor(async () => (await db().select().from(batchPolls).where(hasEnded)).length > 0, {
    what: 'the end of the poll',
  });
  stop.abort();
  await polling;
  expect((await rowOf(id))?.runRemoved).toBe(false);
  renameSync(`${folder}-away`, folder);
  await db()
    .update(batchPolls)
    .set({ due: new Date(0) });
  stop = new AbortController();
  await poll();
  await waitFor(async () => (await rowOf(id))?.runRemoved === true, { what: 'their removal' });
});

test('a folder that has been unreachable in all polls of a day was removed by its user', async () => {
  offer('squeue', '');
  const id = newId();
  await makeJob(id, { hasEnded: true });
  rmSync(join(home, '.windlass'), { recursive: true });
  await poll(newId(), { unreachablePolls: 2 });
  await waitFor(async () => (await rowOf(id))?.runRemoved === true, { what: 'its files to go' });
});

test('many jobs of one account keep no other’s from being looked at, nor each other', async () => {
  const other = newId();
  await db()
    .insert(sessions)
    .values({
      sid: other,
      owner: 'v',
      hostname: sid,
      username: 'v',
      agent: false,
      sealed: Buffer.from('sealed'),
    });
  const ids = Array.from({ length: 5 }, newId);
  for (const id of ids) await makeJob(id);
  sessionOfJob = other;
  const last = newId();
  await makeJob(last);
  sessionOfJob = undefined;
  await poll(newId(), { jobs: 2 });
  for (const id of [last, ...ids])
    await waitFor(
      async () => {
        await db()
          .update(batchPolls)
          .set({ due: new Date(0) })
          .where(isDueSoon(sid));
        return (await rowOf(id))?.state === 'running';
      },
      { what: `a look at ${id}` },
    );
});

test('an account whose host does not answer keeps no other’s from being polled', async () => {
  const slow = newId();
  await db()
    .insert(sessions)
    .values({
      sid: slow,
      owner: 'v',
      hostname: sid,
      username: 'v',
      agent: false,
      sealed: Buffer.from('sealed'),
    });
  const first = newId();
  await makeJob(first);
  sessionOfJob = slow;
  await makeJob(newId());
  sessionOfJob = undefined;
  hanging.add(slow);
  const worker = newId();
  await db()
    .insert(workers)
    .values({ id: worker, host: 'here', pid: 1, slots: {}, seen: sql`now() + interval '1 hour'` });
  await poll(worker);
  await waitFor(async () => (await rowOf(first))?.state === 'running', { what: 'the first poll' });
  const second = newId();
  await makeJob(second);
  await waitFor(async () => (await rowOf(second))?.state === 'running', {
    what: 'the next poll',
    timeoutMs: 90_000,
  });
});

test('a poll keeps the id that an attempt has stored meanwhile', async () => {
  const id = newId();
  await makeJob(id, { number: null });
  onAsk = async () => {
    await db().update(jobs).set({ batch: sql`batch || '{"id": "7"}'` }).where(eq(jobs.id, id));
  };
  await poll();
  await waitFor(async () => (await rowOf(id))?.state === 'running', { what: 'the poll' });
  expect((await rowOf(id))?.batch?.id).toBe('7');
});

test('every account of a worker is asked about, whoever polls the host in turn with it', async () => {
  const asked = join(home, 'asked');
  writeFileSync(asked, '');
  const squeue = join(home, 'bin', 'squeue');
  writeFileSync(squeue, `#!/bin/sh\necho "$@" >>${asked}\n`);
  chmodSync(squeue, 0o755);
  const worker = newId();
  for (const [username, holder, number] of [
    ['a', worker, '71'],
    ['b', worker, '72'],
    ['c', newId(), '73'],
  ] as const) {
    sessionOfJob = newId();
    await db()
      .insert(sessions)
      .values({
        sid: sessionOfJob,
        owner: 'u',
        hostname: sid,
        username,
        agent: false,
        sealed: Buffer.from('sealed'),
        interactive: true,
        holder,
      });
    await makeJob(newId(), { number });
  }
  sessionOfJob = undefined;
  await poll(worker);
  const areAsked = async () => {
    // The other worker has asked for its account, and this one is next.
    await db()
      .update(batchPolls)
      .set({ turn: 'c u', worker, due: new Date(0) })
      .where(isDueSoon(sid));
    const text = readFileSync(asked, 'utf8');
    return text.includes('71') && text.includes('72');
  };
  await waitFor(areAsked, { what: 'both accounts to be asked about' });
});

test('workers that have the only connections of sessions on one host poll it in turn', async () => {
  const holders = [newId(), newId()].sort();
  for (const holder of holders) {
    const own = newId();
    await db()
      .insert(sessions)
      .values({
        sid: own,
        owner: 'u',
        hostname: sid,
        username: 'u',
        agent: false,
        sealed: Buffer.from('sealed'),
        interactive: true,
        holder,
      });
    sessionOfJob = own;
    await makeJob(newId());
  }
  sessionOfJob = undefined;
  await followHost(db(), sid);
  const turns: (string | null)[] = [];
  for (let n = 0; n < 4; n++) {
    await endPoll(db(), { hostname: sid, turn: '' });
    const [row] = await db().select().from(batchPolls).where(eq(batchPolls.hostname, sid));
    turns.push(row?.worker ?? null);
  }
  expect(turns).toEqual([...holders, ...holders]);
  stop.abort();
});

test('a worker that has no connection to a host leaves its poll to the one that has', async () => {
  await makeJob(newId());
  const holder = newId();
  await db().update(sessions).set({ interactive: true, holder }).where(eq(sessions.sid, sid));
  await poll();
  const isPassed = async () => {
    const [row] = await db().select().from(batchPolls).where(eq(batchPolls.hostname, sid));
    if (!row) throw new Error('the poll is gone');
    return row.worker === holder;
  };
  await waitFor(isPassed, { what: 'the poll to be passed' });
});

test('an open job is looked at, also where its host once refused the credential', async () => {
  mayUse = false;
  try {
    await makeJob(newId());
    await poll();
    await waitFor(() => channels > 0, { what: 'a look at its files' });
  } finally {
    mayUse = true;
  }
});

test('no login is made for what has ended with a credential that was refused', async () => {
  mayUse = false;
  try {
    const id = newId();
    await makeJob(id, { hasEnded: true });
    await poll();
    const isPolled = async () => {
      const [row] = await db().select().from(batchPolls).where(eq(batchPolls.hostname, sid));
      return row !== undefined && row.worker !== null && row.due < new Date(Date.now() + 60_000);
    };
    await waitFor(isPolled, { what: 'a poll' });
    expect(channels).toBe(0);
    expect((await rowOf(id))?.runRemoved).toBe(false);
  } finally {
    mayUse = true;
  }
});
