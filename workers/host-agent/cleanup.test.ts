import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  baseOf,
  filesOf,
  follow,
  listRuns,
  processesOf,
  runDirectory,
  SHELLS,
  useAgentHarness,
} from '../../test/harness/hosts/agent-harness.ts';
import type { LocalExec } from '../../test/harness/hosts/local-exec.ts';
import { waitFor } from '../../test/harness/wait-for.ts';
import { loadAgentFile } from './agent-file.ts';
import type { AgentClient } from './client.ts';

const harness = useAgentHarness();

const DAY_S = 86_400;

/** Sets the times of a file, or of all files in a directory, to so many days ago. */
function age(path: string, days: number): void {
  const then = Date.now() / 1_000 - days * DAY_S;
  if (statSync(path).isDirectory())
    for (const name of readdirSync(path)) age(join(path, name), days);
  utimesSync(path, then, then);
}

/** Creates a file that a sweep removes, which shows that the sweep has run. */
function createBait(host: LocalExec): string {
  const bait = join(baseOf(host), 'new.999999');
  writeFileSync(bait, 'half of an agent');
  age(bait, 2);
  return bait;
}

async function connectAndSweep(host: LocalExec): Promise<AgentClient> {
  const bait = createBait(host);
  const client = await harness.connect(host);
  await waitFor(() => !existsSync(bait), { what: 'the sweep' });
  return client;
}

async function endHostSessions(client: AgentClient, host: LocalExec): Promise<void> {
  client.close();
  await client.closed;
  await waitFor(() => readdirSync(join(baseOf(host), 'serve')).length === 0, {
    what: 'the end of the serve',
  });
}

describe.each(SHELLS)('cleanup on a host, under %s', shell => {
  test('a run that ended long ago is kept with its output until it is forgotten', async () => {
    const host = harness.makeHost(shell);
    const first = await harness.connect(host);
    const { id } = await harness.run(first, 'echo kept; exit 4');
    const directory = runDirectory(host, id);
    await endHostSessions(first, host);
    for (const path of [directory, join(baseOf(host), 'started', id)]) age(path, 400);
    const next = await connectAndSweep(host);
    const result = await follow(next, id);
    expect(result.stdout.toString()).toBe('kept\n');
    expect(result.last).toMatchObject({ type: 'ended', code: 4 });
    expect(await listRuns(next)).toEqual([{ id, state: 'ended' }]);
    await next.forget(id);
    expect(await listRuns(next)).toEqual([]);
    expect(existsSync(directory)).toBe(false);
  });

  test('each of thousands of runs is listed once, without the forgotten ones', async () => {
    const host = harness.makeHost(shell);
    const client = await harness.connect(host);
    const first = await harness.run(client, 'true');
    const started = join(baseOf(host), 'started');
    const names = Array.from({ length: 2_100 }, (_, n) => `s-${String(n).padStart(5, '0')}`);
    for (const name of names) writeFileSync(join(started, name), '-stopped -\n');
    for (let n = 0; n < 1_200; n++) writeFileSync(join(started, `f-${n}`), '-forgotten -\n');
    const { id } = await harness.run(client, 'true');
    await client.forget(id);
    const pages: number[] = [];
    const found: string[] = [];
    for await (const runs of client.list()) {
      pages.push(runs.length);
      found.push(...runs.map(run => run.id));
    }
    expect(Math.max(...pages)).toBe(1_000);
    expect(found.sort()).toEqual([first.id, ...names].sort());
  });

  test('partly installed files and agents of other versions are removed after a day, if no serve uses them', async () => {
    const host = harness.makeHost(shell);
    const base = baseOf(host);
    const client = await harness.connect(host);
    const old = (digit: string) => `agent-${digit.repeat(16)}.sh`;
    const [dead, young, read] = [old('a'), old('b'), old('c')];
    for (const name of [dead, young, read]) writeFileSync(join(base, name), 'exit\n');
    // As if a serve of another version were alive.
    const [serve = ''] = readdirSync(join(base, 'serve'));
    renameSync(join(base, 'serve', serve, loadAgentFile().name), join(base, 'serve', serve, read));
    for (const name of [dead, read, loadAgentFile().name]) age(join(base, name), 30);
    const second = await connectAndSweep(host);
    const agents = () => filesOf(host).filter(name => /^agent-|^new/.test(name));
    await waitFor(() => !agents().includes(dead), { what: 'the end of the old agent' });
    expect(agents()).toEqual([young, read, loadAgentFile().name].sort());
    await leaveBoth(host, [client, second]);
    await connectAndSweep(host);
    await waitFor(() => !agents().includes(read), { what: 'the end of the agent that was read' });
    expect(agents()).toEqual([young, loadAgentFile().name].sort());
  });

  test('agents stay while a live serve does not say which one it uses', async () => {
    const host = harness.makeHost(shell);
    const base = baseOf(host);
    await harness.connect(host);
    const [serve = ''] = readdirSync(join(base, 'serve'));
    const mark = join(base, 'serve', serve, loadAgentFile().name);
    renameSync(mark, `${mark}.hidden`);
    const old = join(base, `agent-${'a'.repeat(16)}.sh`);
    writeFileSync(old, 'exit\n');
    age(old, 30);
    const abandoned = makeAttempt(host, 'gone-1-2-1000001');
    await harness.connect(host);
    // The sweep checks it after the agents.
    await waitFor(() => !existsSync(abandoned), { what: 'the sweep' });
    expect(existsSync(old)).toBe(true);
  });

  test('an attempt that died between its claim and its fence is removed, one that has a fence stays', async () => {
    const host = harness.makeHost(shell);
    await endHostSessions(await harness.connect(host), host);
    const died = makeAttempt(host, 'gone-1-2-1000001');
    const started = makeAttempt(host, 'gone-1-2-1000002', { fence: 'ours' });
    const young = makeAttempt(host, 'gone-1-2-1000003', { days: 0 });
    const client = await harness.connect(host);
    await waitFor(() => !existsSync(died), { what: 'the sweep' });
    expect([existsSync(started), existsSync(young)]).toEqual([true, true]);
    expect((await follow(client, 'ours')).types).toEqual(['lost']);
  });

  test('a fence goes once every serve has renewed its birth, while the connections live', async () => {
    const host = harness.makeHost(shell);
    const first = await harness.connect(host);
    const second = await harness.connect(host);
    const { id } = await harness.run(first, 'true');
    const fence = join(baseOf(host), 'started', id);
    await first.forget(id);
    await first.ping();
    const third = await connectAndSweep(host);
    expect(existsSync(fence)).toBe(true);
    await pingUntil(() => !existsSync(fence), [second, third, first]);
    expect((await harness.run(second, 'echo alive')).stdout.toString()).toBe('alive\n');
  });

  test('thousands of runs of one connection leave at most a thousand fences', async () => {
    const host = harness.makeHost(shell);
    const client = await harness.connect(host);
    const started = join(baseOf(host), 'started');
    const fences = () => readdirSync(started).filter(name => name.startsWith('f-'));
    let most = 0;
    // Some shells compare times by the second.
    for (let n = 0; n < 3_000; n += 200) {
      const ids = Array.from({ length: 200 }, (_, m) => `f-${n + m}`);
      const since = Date.now();
      // As of runs that were stopped before they began.
      for (const id of ids) writeFileSync(join(started, id), '-stopped -\n');
      expect(await client.forgetAll(ids)).toEqual([]);
      most = Math.max(most, fences().length);
      await waitFor(() => Date.now() - since > 500, { what: 'half a second' });
    }
    expect(most).toBeLessThanOrEqual(1_000);
    await pingUntil(() => fences().length === 0, [client]);
  });

  test('a serve of another node without activity for a day keeps no fence, and starts nothing', async () => {
    const host = harness.makeHost(shell);
    const base = baseOf(host);
    const client = await harness.connect(host);
    const { id } = await harness.run(client, 'true');
    const [serve = ''] = readdirSync(join(base, 'serve'));
    const far = join(base, 'serve', serve);
    writeFileSync(join(far, 'born'), 'elsewhere\n');
    await client.forget(id);
    const second = await harness.connect(host);
    await second.forget(id);
    await leaveBoth(host, [second], [serve]);
    await connectAndSweep(host);
    expect(existsSync(far)).toBe(true);
    expect(existsSync(join(base, 'started', id))).toBe(true);
    age(far, 2);
    await client.ping();
    await connectAndSweep(host);
    expect(existsSync(far)).toBe(true);
    age(far, 2);
    await connectAndSweep(host);
    await waitFor(() => !readdirSync(join(base, 'serve')).some(name => name.endsWith(serve)), {
      what: 'its cleanup',
    });
    const events = client.run({ id: 'late', token: 'one', command: 'touch ran' });
    await expect(events.next()).rejects.toThrow();
    expect(existsSync(join(host.account.home, 'ran'))).toBe(false);
    await harness.close();
    await waitFor(() => processesOf(host).length === 0, { what: 'the end of every process' });
    await harness.connect(host);
    await waitFor(() => !existsSync(join(base, 'started', id)), { what: 'the end of the fence' });
  });
});

/** As clients do each 30 s; the host forgets nothing itself. */
async function pingUntil(reached: () => boolean, clients: AgentClient[]): Promise<void> {
  await waitFor(
    async () => {
      await clients.at(-1)?.forget('unknown');
      for (const client of clients) await client.ping();
      return reached();
    },
    { what: 'the end of the fences' },
  );
}

async function leaveBoth(host: LocalExec, clients: AgentClient[], left: string[] = []) {
  for (const client of clients) {
    client.close();
    await client.closed;
  }
  await waitFor(() => readdirSync(join(baseOf(host), 'serve')).every(name => left.includes(name)), {
    what: 'the end of their serves',
  });
}

/** An attempt of an earlier boot, as a crash of the host leaves it. */
function makeAttempt(host: LocalExec, name: string, { fence = '', days = 2 } = {}): string {
  const directory = join(baseOf(host), 'runs', name);
  const node = readFileSync('/proc/sys/kernel/hostname', 'utf8').trim();
  mkdirSync(directory);
  writeFileSync(join(directory, 'supervisor'), `${node} an-earlier-boot 1 2\n`);
  writeFileSync(join(directory, 'claim'), `${fence || name}\n`);
  if (fence) writeFileSync(join(baseOf(host), 'started', fence), `token ${name}\n`);
  age(directory, days);
  return directory;
}
