/**
 * `npm run bench:remote`: what a remote command costs here, as ratios against this machine's `ssh` and against plain ssh2
 * on the same host, in the same run. Needs sshd and ssh. Fails when a promise of docs/performance.md is not kept. Names of
 * parts as arguments measure these alone: warm, fresh, bulk, lines, browse.
 */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type SshHost, startSshHost } from '../servers/ssh-host.ts';
import { startStack } from '../servers/stack.ts';
import { compareBrowse } from './browse.ts';
import { compareBulk } from './bulk.ts';
import { OpenSsh } from './open-ssh.ts';
import { type Compared, compare, type Side } from './pairs.ts';
import { addHost, openSession } from './session.ts';

/** What one side of a pair does before its mean is taken: one launch alone is mostly noise. */
const LAUNCHES = 5;
/** Costs bash 160 ms on the machine of docs/performance.md, as environment modules and the like do. */
const COSTLY = 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done\n';
const LINES = 40;
const LINE_MS = 100;

const PARTS = ['warm', 'fresh', 'bulk', 'lines', 'browse'];
const chosen = process.argv.slice(2);
const unknown = chosen.find(part => !PARTS.includes(part));
if (unknown) throw new Error(`There is no part ${unknown}; there is ${PARTS.join(', ')}.`);
const isWanted = (part: string) => chosen.length === 0 || chosen.includes(part);

const directory = mkdtempSync(join(tmpdir(), 'windlass-bench-'));
// Postgres runs as another user where this is root.
chmodSync(directory, 0o711);
const [plain, costly] = await Promise.all([startHost('plain'), startHost('costly')]);
writeFileSync(join(costly.home, '.bashrc'), COSTLY);
const stack = await startStack({
  directory,
  environment: { PATH: process.env.PATH },
  settings: { LIMIT_REQUESTS: '0' },
});
const { client } = stack;

try {
  await addHost(client, 'plain', plain);
  await addHost(client, 'costly', costly);
  const results = [
    ...(await compareCommands()),
    ...(isWanted('bulk') ? await compareBulk({ host: plain, directory }) : []),
    ...(isWanted('lines') ? [await measureLines()] : []),
    ...(isWanted('browse')
      ? await compareBrowse({
          client,
          sid: await openSession(client, 'plain', plain),
          host: plain,
          directory,
        })
      : []),
  ];
  process.exitCode = results.every(result => result.kept) ? 0 : 1;
} finally {
  await stack.stop();
  await Promise.all([plain.stop(), costly.stop()]);
  rmSync(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
}

async function startHost(name: string): Promise<SshHost> {
  const host = await startSshHost({ directory: join(directory, name), log: () => {} });
  if (host.kind !== 'sshd') throw new Error('There is no sshd on this machine.');
  return host;
}

async function launch(sid: string, command: string): Promise<{ output: string; job: string }> {
  return client.post('/api/remotes/launch', { sid, command });
}

/** Milliseconds for each of so many. */
function timed(count: number, work: () => Promise<unknown>): Side {
  return async () => {
    const began = performance.now();
    for (let n = 0; n < count; n++) await work();
    return (performance.now() - began) / count;
  };
}

async function compareCommands(): Promise<Compared[]> {
  const results: Compared[] = [];
  for (const [name, host, promise] of [
    ['plain', plain, 3],
    ['costly', costly, 0.5],
  ] as const) {
    const ssh = new OpenSsh(host, directory);
    if (isWanted('warm')) results.push(await compareWarm({ name, host, ssh, promise }));
    if (isWanted('fresh')) results.push(await compareFresh(name, host, ssh));
  }
  return results;
}

/** Over connections that both sides hold already. */
async function compareWarm(given: {
  name: string;
  host: SshHost;
  ssh: OpenSsh;
  promise: number;
}): Promise<Compared> {
  const { name, host, ssh, promise } = given;
  await ssh.openControl();
  const sid = await openSession(client, name, host);
  const result = await compare({
    name: `launch in a warm session, against ssh with ControlMaster (${name} shell start-up)`,
    ours: timed(LAUNCHES, () => launch(sid, 'true')),
    peer: timed(LAUNCHES, () => ssh.runOverControl('true')),
    unit: 'ms',
    better: 'less',
    promise,
  });
  await ssh.closeControl();
  return result;
}

/** From nothing to the first output; what was opened is ended outside of the measured time. */
async function compareFresh(name: string, host: SshHost, ssh: OpenSsh): Promise<Compared> {
  const opened: string[] = [];
  const result = await compare({
    name: `a fresh session to its first output, against a fresh ssh (${name} shell start-up)`,
    ours: timed(1, async () => {
      const sid = await openSession(client, name, host);
      opened.push(sid);
      await launch(sid, 'echo here');
    }),
    peer: timed(1, () => ssh.run('echo here')),
    unit: 'ms',
    better: 'less',
    promise: 1.2,
  });
  for (const sid of opened) await client.delete(`/api/remotes/${sid}`);
  return result;
}

/** How long a line takes from the moment the host prints it to the event stream: one clock, as all is on one machine. */
async function measureLines(): Promise<{ kept: boolean }> {
  const sid = await openSession(client, 'plain', plain);
  const command = `n=0; while [ $n -lt ${LINES} ]; do date +%s%N; sleep ${LINE_MS / 1_000}; n=$((n+1)); done`;
  const { id } = await client.post<{ id: string }>(
    '/api/remotes/launch',
    { sid, command },
    { Prefer: 'respond-async' },
  );
  const delays: number[] = [];
  for await (const { event, data } of client.events(id)) {
    if (event === 'state' && data.state !== 'running' && data.state !== 'queued') break;
    if (event !== 'output') continue;
    const now = performance.timeOrigin + performance.now();
    for (const line of String(data.text).trim().split('\n')) delays.push(now - Number(line) / 1e6);
  }
  if (delays.length !== LINES) throw new Error(`${delays.length} of ${LINES} lines came`);
  const median = delays.toSorted((a, b) => a - b)[LINES / 2] ?? Number.NaN;
  const kept = median <= 100;
  console.log(
    `${kept ? 'ok  ' : 'MISS'} a line from the host to the event stream: ${Math.round(median)} ms at the median (at most 100)`,
  );
  return { kept };
}
