import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest';
import { findProgram } from '../../scripts/programs.ts';
import type { Database } from '../../shared/database/connect.ts';
import { jobs, sessions } from '../../shared/database/schema.ts';
import { newId } from '../../shared/ids.ts';
import { createLog } from '../../shared/log.ts';
import type { AgentClient } from '../../workers/host-agent/client.ts';
import { LeftoverRuns } from '../../workers/runs/leftover-runs.ts';
import { AgentHarness, listRuns, processesOf, runDirectory } from '../harness/agent-harness.ts';
import type { LocalExec } from '../harness/local-exec.ts';
import { withDatabase } from '../harness/migrated-database.ts';
import { waitFor } from '../harness/wait-for.ts';

const given = withDatabase('leftover-runs');
const harness = new AgentHarness();
let host: LocalExec;
let client: AgentClient;
let sid: string;

beforeEach(async () => {
  host = harness.makeHost(findProgram('dash') ?? '/bin/sh');
  client = await harness.connect(host);
  await given.database().db.update(jobs).set({ runRemoved: true });
  sid = await openSession();
});
afterEach(() => harness.close());
afterAll(() => harness.clean());

async function openSession(): Promise<string> {
  const made = newId();
  await given
    .database()
    .db.insert(sessions)
    .values({
      ...{ sid: made, owner: 'u', hostname: 'h', username: 'u', agent: true },
      sealed: Buffer.from('sealed'),
    });
  return made;
}

/** A job that ended a minute ago. */
async function makeJob(set: Partial<typeof jobs.$inferInsert> = {}): Promise<string> {
  const id = newId();
  await given
    .database()
    .db.insert(jobs)
    .values({
      ...{ id, kind: 'command', queue: 'remote', owner: 'u', payload: {}, session: sid },
      ...{ state: 'cancelled', cancelRequested: new Date(), runAt: new Date() },
      ...{ finished: new Date(Date.now() - 60_000) },
      ...set,
    });
  return id;
}

const unknown = {
  state: 'failed',
  cancelRequested: null,
  error: { code: 'outcome_unknown' },
} as const;
const limited = { ...unknown, error: { code: 'time_limit' } };

/** As one that lives on another node of the home, where nobody can stop it from here. */
function makeFarRun(id: string): void {
  const base = join(host.account.home, '.windlass');
  const directory = join(base, 'runs', `far-1-2-${id}`);
  mkdirSync(directory);
  writeFileSync(join(directory, 'minder'), 'elsewhere its-boot 1 2\n');
  writeFileSync(join(base, 'started', id), `token far-1-2-${id}\n`);
}

async function start(id: string): Promise<void> {
  await client.run({ id, token: 'one', command: 'exec sleep 300' }).next();
}

const sleeping = () => processesOf(host).filter(line => /^\d+ sleep 300/.test(line));

interface Watched {
  runs: LeftoverRuns;
  /** Sessions that were used, in order. */
  used: string[];
  /** One look, and the end of what it found. */
  lookToEnd(): Promise<void>;
}

/** What looks after this host, as if each session were connected to it; those in `away` cannot be used. */
function watch(
  options: {
    away?: Set<string>;
    slow?: { sid: string; wait: Promise<void> };
    mostRemembered?: number;
  } = {},
): Watched {
  const { away = new Set<string>(), slow, mostRemembered } = options;
  const database: Pick<Database, 'db'> = given.database();
  const used: string[] = [];
  let open = 0;
  const runs = new LeftoverRuns({
    ...{ database, limitSeconds: 0, mostRemembered },
    log: createLog({ level: 'silent', name: 'test' }),
    mayUse: async () => true,
    use: async (session, _signal, work) => {
      used.push(session);
      open++;
      try {
        if (away.has(session)) throw new Error('away');
        if (slow?.sid === session) await slow.wait;
        return await work({ agent: async () => client });
      } finally {
        open--;
      }
    },
  });
  const lookToEnd = async () => {
    const before = used.length;
    await runs.look();
    await waitFor(() => used.length > before && open === 0, { what: 'the end of a look' });
  };
  return { runs, used, lookToEnd };
}

const forgotten = async (id: string) => {
  const rows = await given.database().db.select().from(jobs);
  return rows.find(row => row.id === id)?.runRemoved;
};

test('twenty runs that cannot be stopped hold up no other of their session', async () => {
  for (let n = 0; n < 20; n++) makeFarRun(await makeJob());
  const last = await makeJob();
  await start(last);
  const { runs, used, lookToEnd } = watch();
  await lookToEnd();
  expect(await forgotten(last)).toBe(false);
  await lookToEnd();
  await waitFor(() => forgotten(last), { what: 'its removal' });
  expect(sleeping()).toEqual([]);
  // They are left alone for a while.
  await runs.look();
  expect(used.length).toBe(2);
});

test('however many live on, each run has its turn', async () => {
  for (let n = 0; n < 45; n++) makeFarRun(await makeJob());
  const last = await makeJob();
  await start(last);
  const { lookToEnd } = watch({ mostRemembered: 1 });
  for (let n = 0; n < 3; n++) await lookToEnd();
  await waitFor(() => forgotten(last), { what: 'its removal' });
});

test('a session that cannot be used holds up no other', async () => {
  const away = sid;
  for (let n = 0; n < 25; n++) await makeJob();
  sid = await openSession();
  const id = await makeJob();
  await start(id);
  const watched = watch({ away: new Set([away]) });
  await watched.lookToEnd();
  await watched.lookToEnd();
  await waitFor(() => forgotten(id), { what: 'its removal' });
  expect(watched.used).toEqual([away, sid]);
});

test('a host that takes long holds up no other', async () => {
  const slow = sid;
  await makeJob();
  sid = await openSession();
  const id = await makeJob();
  await start(id);
  let goOn = () => {};
  const wait = new Promise<void>(resolve => {
    goOn = resolve;
  });
  const { runs, used } = watch({ slow: { sid: slow, wait } });
  await runs.look();
  await waitFor(() => forgotten(id), { what: 'its removal' });
  sid = await openSession();
  const next = await makeJob();
  await runs.look();
  await waitFor(() => forgotten(next), { what: 'the removal of the next' });
  expect(used.filter(session => session === slow).length).toBe(1);
  goOn();
});

test('one rule says what is stopped: what its job calls unknown runs on until it ends', async () => {
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
  killMinder(lost);
  await waitFor(async () => stateOf(await listRuns(client), lost) === 'lost', { what: 'its loss' });
  const directory = runDirectory(host, lost);
  await watch().lookToEnd();
  for (const id of [ended, lost, ...over])
    await waitFor(() => forgotten(id), { what: 'the removal of all others' });
  expect(await forgotten(going)).toBe(false);
  expect(await listRuns(client)).toEqual([{ id: going, state: 'running' }]);
  expect(sleeping().length).toBe(1);
  expect(existsSync(directory)).toBe(false);
  await client.stop(going);
});

function killMinder(id: string): void {
  const record = readFileSync(join(runDirectory(host, id), 'minder'), 'utf8');
  process.kill(Number(record.split(' ')[2]), 'SIGKILL');
}

const stateOf = (runs: { id: string; state: string }[], id: string) =>
  runs.find(run => run.id === id)?.state;
