/**
 * `npm run bench:http`: compares HTTP requests with bare Express (bench/baseline.ts) on the same database, in the same run.
 * Fails if a ratio misses its target in docs/performance.md. Arguments: words of the comparisons to run; default all.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { pino } from 'pino';
import { startPostgres } from '../cli/embedded-postgres/postgres.ts';
import { openDatabase } from '../shared/database/connect.ts';
import { jobs, sessions } from '../shared/database/schema.ts';
import { newId } from '../shared/ids.ts';
import { sleep } from '../shared/process/abort.ts';
import { appendAudit } from '../workers/upkeep/audit-chain.ts';
import { type Comparison, type ComparisonResult, compare } from './compare.ts';
import { measureRate } from './http-load.ts';
import { makeDirectories } from './prepare.ts';
import { startApi } from './start-api.ts';

const wanted = process.argv.slice(2);
const { directory, dataDir } = makeDirectories();
const stop = new AbortController();
const log = pino({ level: 'silent' });
const postgres = await startPostgres({ dataDir, log, signal: stop.signal });
const stack = await startApi({ directory, databaseUrl: postgres.url });
const baseline = fork(fileURLToPath(new URL('./baseline.js', import.meta.url)), [
  postgres.url,
  stack.username,
]);
const [baselinePort] = (await once(baseline, 'message')) as [number];
const baselineUrl = `http://127.0.0.1:${baselinePort}`;

try {
  const results = await run();
  process.exitCode = results.every(result => result.passed) ? 0 : 1;
} finally {
  if (baseline.connected) baseline.disconnect();
  await stack.stop();
  await postgres.stop();
  rmSync(directory, { recursive: true, force: true });
}

async function run(): Promise<ComparisonResult[]> {
  const { sid, vsid } = await makeRecords();
  const { url, username, password } = stack;
  const basic = { Authorization: `Basic ${btoa(`${username}:${password}`)}` };
  const bearer = { Authorization: `Bearer ${await makeToken(basic)}` };
  const path = `${url}/api/remotes/${sid}/videos/${vsid}/status`;
  const poll = (headers: Record<string, string>, status = 200) =>
    measureRate({ url: path, headers, status });
  const answer = await fetch(path, { headers: basic });
  const tag = answer.headers.get('ETag') ?? '';
  const { project, large } = await makeLargeRecord(basic);
  const launch = { sid, command: 'true' };
  const json = { 'Content-Type': 'application/json' };
  const baselinePoll = () =>
    measureRate({ url: `${baselineUrl}/status/${sid}/${vsid}`, status: 200 });
  const acceptCommands = () =>
    measureRate({
      url: `${url}/api/remotes/launch`,
      method: 'POST',
      headers: { ...basic, ...json, Prefer: 'respond-async' },
      body: JSON.stringify(launch),
      status: 202,
    });
  const comparisons: Comparison[] = [
    {
      name: 'status poll with Basic',
      ours: () => poll(basic),
      baseline: baselinePoll,
      unit: 'requests/s',
      target: 0.9,
    },
    {
      name: 'status poll with a token',
      ours: () => poll(bearer),
      baseline: baselinePoll,
      unit: 'requests/s',
      target: 0.9,
    },
    {
      name: '304 against our own 200 of a small record',
      ours: () => poll({ ...basic, 'If-None-Match': tag }, 304),
      baseline: () => poll(basic),
      unit: 'requests/s',
      target: 1,
    },
    {
      name: '304 against our own 200 of 16 KB',
      ours: () =>
        measureRate({
          url: large.url,
          headers: { ...basic, 'If-None-Match': large.tag },
          status: 304,
        }),
      baseline: () => measureRate({ url: large.url, headers: basic, status: 200 }),
      unit: 'requests/s',
      target: 1.2,
    },
    {
      name: 'a project, against Express without a query',
      ours: () => measureRate({ url: project, headers: basic, status: 200 }),
      baseline: () => measureRate({ url: `${baselineUrl}/project`, status: 200 }),
      unit: 'requests/s',
      target: 0.6,
    },
    {
      name: 'a command accepted',
      ours: acceptCommands,
      baseline: () =>
        measureRate({
          url: `${baselineUrl}/launch`,
          method: 'POST',
          headers: json,
          body: JSON.stringify(launch),
          status: 202,
        }),
      unit: 'requests/s',
      target: 0.7,
    },
    {
      name: 'a command accepted beside 1,000 entries of the audit a second',
      ours: () => besideAudit(acceptCommands, 1_000),
      baseline: () => besideAudit(acceptCommands, 0),
      unit: 'requests/s',
      target: 0.95,
    },
  ];
  const results: ComparisonResult[] = [];
  for (const comparison of comparisons) {
    if (wanted.every(word => comparison.name.includes(word)))
      results.push(await compare(comparison));
  }
  return results;
}

/** So many entries a second besides the commands' own; all of them are chained, as a worker does it. */
async function besideAudit(work: () => Promise<number>, perSecond: number): Promise<number> {
  const database = openDatabase(postgres.url, { max: 2 });
  const done = new AbortController();
  const repeat = async (every: number, step: () => Promise<unknown>) => {
    while (!done.signal.aborted) {
      const began = performance.now();
      await step();
      await sleep(done.signal, began + every - performance.now());
    }
  };
  const loops = [repeat(400, () => appendAudit({ database, stopping: done.signal }))];
  if (perSecond > 0)
    loops.push(
      repeat(
        20,
        () => database.sql`
        insert into audit_pending (username, address, action, target)
        select 'somebody', '192.0.2.1', 'command', repeat('0', 64)
        from generate_series(1, ${perSecond / 50})`,
      ),
    );
  const rate = await work();
  done.abort();
  await Promise.all(loops);
  await database.close();
  return rate;
}

/** Inserts an open session with a running video job. There is no worker. */
async function makeRecords(): Promise<{ sid: string; vsid: string }> {
  const database = openDatabase(postgres.url, { max: 1 });
  const [sid, vsid] = [newId(), newId()];
  await database.db.insert(sessions).values({
    sid,
    owner: stack.username,
    hostname: 'bench',
    username: 'bench',
    agent: true,
    opened: new Date(),
  });
  await database.db.insert(jobs).values({
    id: vsid,
    kind: 'video',
    queue: 'nobody',
    owner: stack.username,
    session: sid,
    payload: {},
    state: 'running',
    message: 'Encoding.',
    progress: 0.5,
  });
  await database.close();
  return { sid, vsid };
}

async function makeToken(headers: Record<string, string>): Promise<string> {
  const answer = await fetch(`${stack.url}/api/users/-/tokens`, {
    method: 'POST',
    headers: { ...headers, 'Content-Type': 'application/json' },
    body: JSON.stringify({ name: 'bench', scope: 'read' }),
  });
  return ((await answer.json()) as { token: string }).token;
}

/** A parameter of 16 KB. */
async function makeLargeRecord(headers: Record<string, string>) {
  const send = async (method: string, path: string, body: unknown) => {
    const answer = await fetch(`${stack.url}/api${path}`, {
      method,
      headers: { ...headers, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`${method} ${path}: ${await answer.text()}`);
    return answer;
  };
  const { id: pid } = (await (await send('POST', '/projects', { name: 'bench' })).json()) as {
    id: string;
  };
  const made = await send('POST', `/projects/${pid}/models`, { 'model-type': 'x', name: 'bench' });
  const { id: mid } = (await made.json()) as { id: string };
  await send('PUT', `/models/${mid}/parameters/large`, { value: 'x'.repeat(16_000) });
  const url = `${stack.url}/api/models/${mid}/parameters/large`;
  const answer = await fetch(url, { headers });
  return {
    project: `${stack.url}/api/projects/${pid}`,
    large: { url, tag: answer.headers.get('ETag') ?? '' },
  };
}
