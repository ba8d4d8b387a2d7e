import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { findProgram } from '../../scripts/programs.ts';
import type { Database } from '../../shared/database/connect.ts';
import { jobs, leftoverRuns, sessions } from '../../shared/database/schema.ts';
import { newId } from '../../shared/ids.ts';
import { createLog } from '../../shared/process/log.ts';
import type { AgentClient } from '../../workers/host-agent/client.ts';
import { FinishedRunRemover } from '../../workers/runs/finished-run-remover.ts';
import { withDatabase } from '../harness/databases/migrated-database.ts';
import {
  listRuns,
  processesOf,
  runDirectory,
  useAgentHarness,
} from '../harness/hosts/agent-harness.ts';
import type { LocalExec } from '../harness/hosts/local-exec.ts';
import { waitFor } from '../harness/wait-for.ts';

const given = withDatabase('finished-runs-sweep');
const harness = useAgentHarness();
let host: LocalExec;
let client: AgentClient;
let sid: string;

beforeEach(async () => {
  host = harness.makeHost(findProgram('dash') ?? '/bin/sh');
  client = await harness.connect(host);
  await given.database().db.update(jobs).set({ runRemoved: true });
  sid = await openSession();
});

async function openSession(): Promise<string> {
  const made = newId();
  await given
    .database()
    .db.insert(sessions)
    .values({
      sid: made,
      owner: 'u',
      hostname: 'h',
      username: 'u',
      agent: true,
      sealed: Buffer.from('sealed'),
    });
  return made;
}

/** A job that ended a minute ago. */
async function makeJob(set: Partial<typeof jobs.$inferInsert> = {}): Promise<string> {
  const { id = newId() } = set;
  await given
    .database()
    .db.insert(jobs)
    .values({
      id,
      kind: 'command',
      queue: 'remote',
      owner: 'u',
      payload: {},
      session: sid,
      state: 'cancelled',
      cancelRequested: new Date(),
      runAt: new Date(),
      finished: new Date(Date.now() - 60_000),
      ...set,
    });
  return id;
}

const unknown = {
  state: 'failed',
  cancelRequested: null,
  error: { code: 'outcome_unknown', detail: 'Outcome unknown.' },
} as const;
const limited = { ...unknown, error: { code: 'time_limit', detail: 'Time limit reached.' } };

/** Makes a run that lives on another node of the home, where nobody can stop it from here. */
function makeFarRun(id: string): void {
  const base = join(host.account.home, '.windlass');
  const directory = join(base, 'runs', `far-1-2-${id}`);
  mkdirSync(directory);
  writeFileSync(join(directory, 'supervisor'), 'elsewhere its-boot 1 2\n');
  writeFileSync(join(base, 'started', id), `token far-1-2-${id}\n`);
}

async function start(id: string): Promise<void> {
  await client.run({ id, token: 'one', command: 'exec sleep 300' }).next();
}

const sleeping = () => processesOf(host).filter(line => /^\d+ sleep 300/.test(line));

interface Watched {
  remover: FinishedRunRemover;
  /** Sessions that were used, in order. */
  used: string[];
  /** One sweep, and the removals that it starts. */
  sweepToEnd(): Promise<void>;
}

/** A remover for this host, as if each session were connected to it; those in `unreachable` cannot be used. */
function watch(
  options: {
    unreachable?: Set<string>;
    slow?: { sid: string; wait: Promise<void> };
    maxBackoffs?: number;
  } = {},
): Watched {
  const { unreachable = new Set<string>(), slow, maxBackoffs } = options;
  const database: Pick<Database, 'db'> = given.database();
  const used: string[] = [];
  let open = 0;
  const remover = new FinishedRunRemover({
    database,
    limitSeconds: 0,
    maxBackoffs,
    log: createLog({ level: 'silent', name: 'test' }),
    mayUse: async () => true,
    use: async (session, _signal, work) => {
      used.push(session);
      open++;
      try {
        if (unreachable.has(session)) throw new Error('unreachable');
        if (slow?.sid === session) await slow.wait;
        return await work({ agent: async () => client });
      } finally {
        open--;
      }
    },
  });
  const sweepToEnd = async () => {
    const before = used.length;
    await remover.sweep();
    await waitFor(() => used.length > before && open === 0, { what: 'the end of a sweep' });
  };
  return { remover, used, sweepToEnd };
}

const isRemoved = async (id: string) => {
  const rows = await given.database().db.select().from(jobs);
  return rows.find(row => row.id === id)?.runRemoved;
};

test('twenty runs that cannot be stopped do not delay another of their session', async () => {
  for (let n = 0; n < 20; n++) makeFarRun(await makeJob());
  // Ids of one millisecond are in no order.
  const last = await makeJob({ id: newId(Date.now() + 1_000) });
  await start(last);
  const { remover, used, sweepToEnd } = watch();
  await sweepToEnd();
  expect(await isRemoved(last)).toBe(false);
  await sweepToEnd();
  await waitFor(() => isRemoved(last), { what: 'its removal' });
  expect(sleeping()).toEqual([]);
  // Their backoff has not ended.
  await remover.sweep();
  expect(used.length).toBe(2);
});

test('each run is tried, however many stay alive', async () => {
  for (let n = 0; n < 45; n++) makeFarRun(await makeJob());
  const last = await makeJob();
  await start(last);
  const { sweepToEnd } = watch({ maxBackoffs: 1 });
  for (let n = 0; n < 3; n++) await sweepToEnd();
  await waitFor(() => isRemoved(last), { what: 'its removal' });
});

test('a run whose job has no record any more is swept too', async () => {
  const [id, now] = [newId(), new Date()];
  const { db } = given.database();
  await db.insert(leftoverRuns).values({ id, session: sid, runAt: now, mayKeepRunning: false });
  await start(id);
  await watch().sweepToEnd();
  await waitFor(async () => (await db.select().from(leftoverRuns)).length === 0, {
    what: 'its removal',
  });
  expect(await listRuns(client)).toEqual([]);
});

test('a session that cannot be used does not delay another', async () => {
  const unreachable = sid;
  for (let n = 0; n < 25; n++) await makeJob();
  sid = await openSession();
  const id = await makeJob();
  await start(id);
  const watched = watch({ unreachable: new Set([unreachable]) });
  await watched.sweepToEnd();
  await watched.sweepToEnd();
  await waitFor(() => isRemoved(id), { what: 'its removal' });
  expect(watched.used).toEqual([unreachable, sid]);
});

test('a slow host does not delay another', async () => {
  const slow = sid;
  await makeJob();
  sid = await openSession();
  const id = await makeJob();
  await start(id);
  let goOn = () => {};
  const wait = new Promise<void>(resolve => {
    goOn = resolve;
  });
  const { remover, used } = watch({ slow: { sid: slow, wait } });
  await remover.sweep();
  await waitFor(() => isRemoved(id), { what: 'its removal' });
  sid = await openSession();
  const next = await makeJob();
  await remover.sweep();
  await waitFor(() => isRemoved(next), { what: 'the removal of the next' });
  expect(used.filter(session => session === slow).length).toBe(1);
  goOn();
});

test('stops all but a command of unknown outcome, and removes what has ended', async () => {
  const going = await makeJob(unknown);
  const ended = await makeJob(unknown);
  const lost = await makeJob(unknown);
  const over = await Promise.all([
    makeJob(),
    makeJob(limited),
    makeJob({ ...unknown, kind: 'video' }),
  ]);
  for (const id of [going, ended, lost, ...over]) await start(id);
  await client.stop(ended);
  killFollowers(lost);
  await waitFor(async () => stateOf(await listRuns(client), lost) === 'lost', { what: 'its loss' });
  const directory = runDirectory(host, lost);
  await watch().sweepToEnd();
  for (const id of [ended, lost, ...over])
    await waitFor(() => isRemoved(id), { what: 'the removal of all others' });
  expect(await isRemoved(going)).toBe(false);
  expect(await listRuns(client)).toEqual([{ id: going, state: 'running' }]);
  expect(sleeping().length).toBe(1);
  expect(existsSync(directory)).toBe(false);
  await client.stop(going);
});

/** Kills both processes that a run can be followed by; either would replace the other. */
function killFollowers(id: string): void {
  const read = (name: string) =>
    readFileSync(join(runDirectory(host, id), name), 'utf8').split(' ');
  for (const pid of [read('waiter')[0], read('supervisor')[2]])
    process.kill(Number(pid), 'SIGKILL');
}

const stateOf = (runs: { id: string; state: string }[], id: string) =>
  runs.find(run => run.id === id)?.state;
