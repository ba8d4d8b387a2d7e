import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eq, inArray } from 'drizzle-orm';
import { beforeAll, expect, test } from 'vitest';
import { findProgram } from '../../scripts/programs.ts';
import type { Database } from '../../shared/database/connect.ts';
import { jobs, leftoverRuns } from '../../shared/database/schema.ts';
import { newId } from '../../shared/ids.ts';
import type { AgentClient } from '../../workers/host-agent/client.ts';
import { removeListedRuns } from '../../workers/runs/finished-runs.ts';
import { withDatabase } from '../harness/databases/migrated-database.ts';
import {
  collect,
  listRuns,
  processesOf,
  runDirectory,
  useAgentHarness,
} from '../harness/hosts/agent-harness.ts';
import { waitFor } from '../harness/wait-for.ts';

const given = withDatabase('finished-runs');
const harness = useAgentHarness();
let database: Database;

beforeAll(() => {
  database = given.database();
});

const HOST_SHELL = findProgram('dash') ?? '/bin/sh';

async function makeJob(set: Partial<typeof jobs.$inferInsert> = {}): Promise<string> {
  const id = newId();
  await database.db.insert(jobs).values({
    id,
    kind: 'command',
    queue: 'remote',
    owner: 'u',
    payload: {},
    runAt: new Date(),
    ...set,
  });
  return id;
}

const finished = { state: 'failed', finished: new Date() } as const;
const unknown = { ...finished, error: { code: 'outcome_unknown', detail: 'Outcome unknown.' } };
const late = { ...unknown, runAt: new Date(Date.now() - 7_200_000) };
const limited = { ...finished, error: { code: 'output_limit', detail: 'Output limit reached.' } };
const cancelled = {
  state: 'cancelled',
  finished: new Date(),
  cancelRequested: new Date(),
} as const;

async function start(client: AgentClient, id: string): Promise<void> {
  await client.run({ id, token: 'one', command: 'exec sleep 300' }).next();
}

async function runToEnd(client: AgentClient, id: string): Promise<void> {
  const events = client.run({ id, token: 'one', command: 'echo done' });
  expect((await collect({ client, id, events })).last).toMatchObject({ type: 'ended', code: 0 });
}

const removeFinished = (client: AgentClient, limitSeconds = 0) =>
  removeListedRuns(client, { database, limitSeconds });

test('removes the runs whose job has ended in this database, and no others', async () => {
  const host = harness.makeHost(HOST_SHELL);
  const client = await harness.connect(host);
  const open = await makeJob({ state: 'running' });
  const over = await makeJob(finished);
  const ofAnotherService = newId();
  for (const id of [open, over, ofAnotherService]) await runToEnd(client, id);
  await removeFinished(client);
  expect((await listRuns(client)).map(run => run.id).sort()).toEqual(
    [open, ofAnotherService].sort(),
  );
  const events = client.follow({ id: open, stdout: 0, stderr: 0 });
  const result = await collect({ client, id: open, events });
  expect(result.stdout.toString()).toBe('done\n');
});

test('what another home than that of the run says of it is no removal, for a week', async () => {
  const client = await harness.connect(harness.makeHost(HOST_SHELL));
  const { boot, fences } = client.hello;
  const long = new Date(Date.now() - 8 * 86_400_000);
  const elsewhere = await makeJob({ ...finished, runPlace: `${boot} 1.2-elsewhere` });
  const moved = await makeJob({ ...finished, runPlace: `${boot} 1.2-before`, runAt: long });
  const rebooted = await makeJob({ ...finished, runPlace: `before ${fences}` });
  const noted = await makeJob({ ...finished, runPlace: boot });
  const ids = [elsewhere, moved, rebooted, noted];
  for (const id of ids) await runToEnd(client, id);
  await removeFinished(client);
  const { db } = database;
  const rows = await db.select().from(jobs).where(inArray(jobs.id, ids));
  const isRemoved = new Map(rows.map(row => [row.id, row.runRemoved]));
  expect(ids.map(id => isRemoved.get(id))).toEqual([false, true, true, true]);
});

test('removes runs whose job has no record any more, and then forgets them', async () => {
  const client = await harness.connect(harness.makeHost(HOST_SHELL));
  const { db } = database;
  const [ended, stopped, going, open] = [newId(), newId(), newId(), await makeJob(finished)];
  const runAt = new Date();
  await db.insert(leftoverRuns).values([
    { id: ended, runAt, mayKeepRunning: false },
    { id: stopped, runAt, mayKeepRunning: false },
    { id: going, runAt, mayKeepRunning: true },
  ]);
  for (const id of [ended, open]) await runToEnd(client, id);
  for (const id of [stopped, going]) await start(client, id);
  await removeFinished(client);
  expect(await listRuns(client)).toEqual([{ id: going, state: 'running' }]);
  expect((await db.select().from(leftoverRuns)).map(run => run.id)).toEqual([going]);
  const [row] = await db.select().from(jobs).where(eq(jobs.id, open));
  expect(row?.runRemoved).toBe(true);
  await client.stop(going);
});

test('stops all but a command of unknown outcome, and removes that once it has ended', async () => {
  const host = harness.makeHost(HOST_SHELL);
  const client = await harness.connect(host);
  const going = await makeJob(unknown);
  const stopped = await Promise.all([
    makeJob(cancelled),
    makeJob({ ...unknown, cancelRequested: new Date() }),
    makeJob(limited),
    makeJob(late),
    makeJob({ ...unknown, kind: 'video' }),
  ]);
  for (const id of [going, ...stopped]) await start(client, id);
  await removeFinished(client, 3_600);
  expect(await listRuns(client)).toEqual([{ id: going, state: 'running' }]);
  await client.stop(going);
  await waitFor(async () => (await listRuns(client))[0]?.state === 'ended', { what: 'its end' });
  await removeFinished(client, 3_600);
  expect(await listRuns(client)).toEqual([]);
});

test('without a limit a command of unknown outcome keeps running', async () => {
  const client = await harness.connect(harness.makeHost(HOST_SHELL));
  const id = await makeJob(late);
  await start(client, id);
  await removeFinished(client);
  expect(await listRuns(client)).toEqual([{ id, state: 'running' }]);
  await client.stop(id);
});

test('finds a finished run behind thousands of others', async () => {
  const host = harness.makeHost(HOST_SHELL);
  const client = await harness.connect(host);
  const started = join(host.account.home, '.windlass/started');
  for (let n = 0; n < 2_500; n++)
    writeFileSync(join(started, newId(Date.now() - 10_000)), '-stopped -\n');
  const id = await makeJob(finished);
  await runToEnd(client, id);
  const directory = runDirectory(host, id);
  await removeFinished(client);
  expect(existsSync(directory)).toBe(false);
  const left = await listRuns(client);
  expect(new Set(left.map(run => run.id)).size).toBe(2_500);
});

test('a lost run is removed with its spool', async () => {
  const host = harness.makeHost(HOST_SHELL);
  const client = await harness.connect(host);
  const id = await makeJob(unknown);
  await start(client, id);
  const directory = runDirectory(host, id);
  for (const line of processesOf(host))
    if (/ supervise /.test(line)) process.kill(Number.parseInt(line, 10), 'SIGKILL');
  await waitFor(async () => (await listRuns(client))[0]?.state === 'lost', { what: 'its loss' });
  await removeFinished(client);
  expect(existsSync(directory)).toBe(false);
  expect(processesOf(host).filter(line => /sleep 300/.test(line))).toEqual([]);
});
