/**
 * `npm run bench:remote`: compares remote commands with this machine's `ssh` and with plain ssh2 on the same host, in
 * the same run. Needs sshd and ssh. Fails if a ratio misses its target in docs/performance.md. Arguments select parts:
 * warm, each, fresh, rate, bulk, cat, lines, browse.
 */

import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type SshHost, startSshHost } from '../servers/ssh-host.ts';
import { startStack } from '../servers/stack.ts';
import type { Startup } from '../shared/ssh/startup-files.ts';
import { compareBulk, compareCat } from './bulk-output.ts';
import { compareRates } from './command-rate.ts';
import { type ComparisonResult, compare, type Side } from './compare.ts';
import { compareBrowse } from './list-directory.ts';
import { OpenSsh } from './open-ssh.ts';
import { makeDirectories, readParts } from './prepare.ts';
import { addHost, openSession } from './session.ts';

/** Launches for each measured mean: a single launch is mostly noise. */
const LAUNCHES = 5;
/** Takes bash 160 ms on the machine of docs/performance.md, like the set-up of environment modules. */
const COSTLY = 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done\n';
const LINES = 40;
const LINE_MS = 100;

const isWanted = readParts(['warm', 'each', 'fresh', 'rate', 'bulk', 'cat', 'lines', 'browse']);

const { directory } = makeDirectories();
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
    ...(isWanted('rate') ? await compareRates(client, directory) : []),
    ...(isWanted('bulk') ? await compareBulk({ host: plain, directory }) : []),
    ...(isWanted('cat') ? [await compareCat({ host: plain, directory })] : []),
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
  process.exitCode = results.every(result => result.passed) ? 0 : 1;
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

/** Measures the mean time in milliseconds. */
function timed(count: number, work: () => Promise<unknown>): Side {
  return async () => {
    const began = performance.now();
    for (let n = 0; n < count; n++) await work();
    return (performance.now() - began) / count;
  };
}

async function compareCommands(): Promise<ComparisonResult[]> {
  const results: ComparisonResult[] = [];
  for (const [name, host, target] of [
    ['plain', plain, 3],
    ['costly', costly, 0.5],
  ] as const) {
    const ssh = new OpenSsh(host, directory);
    const at = { name, host, ssh };
    if (isWanted('warm')) results.push(await compareWarm({ ...at, startup: 'once', target }));
    if (isWanted('each')) results.push(await compareWarm({ ...at, startup: 'each' }));
    if (isWanted('fresh')) results.push(await compareFresh(name, host, ssh));
  }
  return results;
}

/** Compares launches over open connections. */
async function compareWarm(options: {
  name: string;
  host: SshHost;
  ssh: OpenSsh;
  startup: Startup;
  target?: number;
}): Promise<ComparisonResult> {
  const { name, host, ssh, startup, target } = options;
  await ssh.openControl();
  const sid = await openSession(client, name, host, { startup });
  const result = await compare({
    name: `launch in a warm session, start-up files read ${startup}, against ssh with ControlMaster (${name} shell start-up)`,
    ours: timed(LAUNCHES, () => launch(sid, 'true')),
    baseline: timed(LAUNCHES, () => ssh.runOverControl('true')),
    unit: 'ms',
    better: 'less',
    target,
  });
  await ssh.closeControl();
  return result;
}

/** Compares the time from login to the first output. Closes the sessions after the measurement. */
async function compareFresh(name: string, host: SshHost, ssh: OpenSsh): Promise<ComparisonResult> {
  const opened: string[] = [];
  const result = await compare({
    name: `a fresh session to its first output, against a fresh ssh (${name} shell start-up)`,
    ours: timed(1, async () => {
      const sid = await openSession(client, name, host);
      opened.push(sid);
      await launch(sid, 'echo here');
    }),
    baseline: timed(1, () => ssh.run('echo here')),
    unit: 'ms',
    better: 'less',
    target: 1.2,
  });
  for (const sid of opened) await client.delete(`/api/remotes/${sid}`);
  return result;
}

/** Measures the delay from printing a line on the host to its event. Both use the clock of this machine. */
async function measureLines(): Promise<{ passed: boolean }> {
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
  const passed = median <= 15;
  console.log(
    `${passed ? 'ok  ' : 'MISS'} a line from the host to the event stream: ${Math.round(median)} ms at the median (at most 15)`,
  );
  return { passed };
}
