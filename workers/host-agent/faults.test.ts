import { execFileSync } from 'node:child_process';
import {
  existsSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { findProgram } from '../../scripts/programs.ts';
import { signalProcess } from '../../servers/processes.ts';
import {
  AgentHarness,
  collect,
  FAMILY,
  filesOf,
  follow,
  listRuns,
  processesOf,
  runDirectory,
} from '../../test/harness/agent-harness.ts';
import {
  awaitPrepared,
  mountSmallDisk,
  NEEDS_MOUNT,
  unmountSmallDisk,
  useUpInodes,
} from '../../test/harness/small-disk.ts';
import { waitFor } from '../../test/harness/wait-for.ts';

const MiB = 1024 * 1024;
const WINDOW = 16 * MiB;
const harness = new AgentHarness();
afterEach(() => harness.close());
afterAll(() => harness.clean());

const SHELLS = FAMILY.map(name => findProgram(name)).filter(path => path !== undefined);
const DASH = findProgram('dash') ?? '/bin/sh';

describe.each(SHELLS)('runs under %s', shell => {
  test('a run whose supervisor was killed is lost, and its processes can still be stopped', async () => {
    const host = harness.makeHost(shell);
    const client = await harness.connect(host);
    const id = harness.newName();
    const events = client.run({ id, token: harness.newName(), command: 'sleep 300' });
    expect(await events.next()).toMatchObject({ value: { type: 'running' } });
    killSupervisor(runDirectory(host, id));
    expect(await events.next()).toEqual({ value: { type: 'lost' }, done: false });
    expect(await client.stop(id)).toEqual({ how: 'mark' });
    expect(processesOf(host).filter(line => line.includes('sleep 300'))).toEqual([]);
    expect((await follow(client, id)).types).toEqual(['lost']);
    await client.forget(id);
    expect(existsSync(runDirectory(host, id))).toBe(false);
  });

  test('what was stopped before it started never starts', async () => {
    const host = harness.makeHost(shell);
    const client = await harness.connect(host);
    const id = harness.newName();
    expect(await client.stop(id)).toEqual({ how: 'never' });
    const events = client.run({ id, token: harness.newName(), command: 'touch ran' });
    expect((await collect({ client, id, events })).types).toEqual(['stopped']);
    expect((await follow(client, id)).types).toEqual(['stopped']);
    await client.forget(id);
    const again = client.run({ id, token: harness.newName(), command: 'touch ran' });
    expect((await collect({ client, id, events: again })).types).toEqual(['taken']);
    expect(existsSync(join(host.account.home, 'ran'))).toBe(false);
  });

  test('a command that kills its own group ends as one, with its output', async () => {
    const client = await harness.connect(harness.makeHost(shell));
    const result = await harness.run(
      client,
      "trap 'echo bye; trap - TERM; kill 0' EXIT; echo hello",
    );
    expect(result.stdout.toString()).toBe('hello\nbye\n');
    // ksh lets a signal from its own EXIT trap pass: so it ends without an agent too.
    expect(result.last).toMatchObject({ type: 'ended', code: shell.endsWith('/ksh') ? 0 : 143 });
  });

  test('what was forgotten is not started again, and its fence goes when nobody can ask', async () => {
    const host = harness.makeHost(shell);
    const first = await harness.connect(host);
    const second = await harness.connect(host);
    const { id } = await harness.run(first, 'true');
    await first.forget(id);
    for (const client of [first, second]) {
      const events = client.run({ id, token: harness.newName(), command: 'touch ran' });
      expect((await collect({ client, id, events })).types).toEqual(['taken']);
    }
    first.close();
    await first.closed;
    expect(filesOf(host)).toContain(`started/${id}`);
    // Born after: its client knows that the run is over. busybox compares whole seconds.
    const { mtimeMs } = statSync(join(host.account.home, '.windlass/started', id));
    const nextSecond = (Math.floor(mtimeMs / 1_000) + 1) * 1_000 + 20;
    await waitFor(() => Date.now() > nextSecond, { what: 'a later second' });
    const third = await harness.connect(host);
    second.close();
    await second.closed;
    await third.ping();
    await waitFor(() => !filesOf(host).includes(`started/${id}`), { what: 'the end of the fence' });
  });

  test('an emitter killed alone ends its serve', async () => {
    const host = harness.makeHost(shell);
    const client = await harness.connect(host);
    await client.ping();
    const serve = host.pids.at(-1);
    const children = execFileSync('ps', ['-o', 'pid=', '--ppid', String(serve)]).toString();
    // The one that reads the fifo; the numbers of processes say nothing, they begin anew at times.
    const emitter = children
      .trim()
      .split(/\s+/)
      .find(pid => readlinkSync(`/proc/${pid}/fd/0`).endsWith('/fifo'));
    process.kill(Number(emitter), 'SIGKILL');
    await client.closed;
    await waitFor(() => processesOf(host).length === 0, { what: 'the end of every process' });
    expect(filesOf(host).filter(file => file.includes('/'))).toEqual([]);
  });

  test('a serve killed with its emitter is cleaned up by the next', async () => {
    const host = harness.makeHost(shell);
    const client = await harness.connect(host);
    const running = client.run({ id: 'survivor', token: 'one', command: 'sleep 300' });
    await running.next();
    // What it forks for a moment may be gone by now.
    for (const line of processesOf(host)) {
      if (/ agent-\S+ serve |agent-\S+ serve /.test(line))
        signalProcess(Number.parseInt(line, 10), 'SIGKILL');
    }
    await client.closed;
    const next = await harness.connect(host);
    await waitFor(() => readdirSync(join(host.account.home, '.windlass/serve')).length === 1, {
      what: 'one serve',
    });
    expect(await listRuns(next)).toEqual([{ id: 'survivor', state: 'running' }]);
    await next.stop('survivor');
    expect((await follow(next, 'survivor')).last).toMatchObject({ type: 'ended', code: 143 });
  });

  test('a full disk ends the run as such, with all that was written', async context => {
    const host = harness.makeHost(shell);
    const { home } = host.account;
    if (!mountSmallDisk(host)) return context.skip(NEEDS_MOUNT);
    try {
      const client = await harness.connect(host);
      const script = [
        'trap : TERM PIPE',
        'echo before',
        'while ! [ -s "$WINDLASS_RUN/o.1000000000000000" ]; do sleep 0.02; done',
        'head -c 16000000 /dev/zero >filling',
        'head -c 2000000 /dev/zero',
        'sleep 300',
      ].join('\n');
      const id = harness.newName();
      const result = await collect({
        client,
        id,
        events: client.run({ id, token: harness.newName(), script }),
      });
      const stdoutBytes = result.stdout.length;
      expect(result.stdout.toString()).toMatch(/^before\n\0*$/);
      expect(result.last).toMatchObject({ type: 'ended', code: -1, stdoutBytes, diskFull: true });
      expect(processesOf(host).filter(line => line.includes('sleep 300'))).toEqual([]);
      const refused = client.run({ id: 'refused', token: 'one', command: 'true' });
      await expect(refused.next()).rejects.toMatchObject({ code: 'remote_disk_full' });
      await client.forget(id);
      execFileSync('rm', [join(home, 'filling')]);
      expect((await harness.run(client, 'echo again')).stdout.toString()).toBe('again\n');
    } finally {
      await unmountSmallDisk(harness, host);
    }
  });

  test('where not even an empty file can be made, the end is recorded all the same', async context => {
    const host = harness.makeHost(shell);
    const { home } = host.account;
    if (!mountSmallDisk(host, 'nr_inodes=200')) return context.skip(NEEDS_MOUNT);
    try {
      const client = await harness.connect(host);
      expect((await useUpInodes(host, client)).last).toMatchObject({ type: 'ended', code: 7 });
      expect(() => writeFileSync(join(home, 'one-more'), '')).toThrow('ENOSPC');
    } finally {
      await unmountSmallDisk(harness, host);
    }
  });

  test('where not even an empty file can be made, it is known later that a run was stopped', async context => {
    const host = harness.makeHost(shell);
    if (!mountSmallDisk(host, 'nr_inodes=200')) return context.skip(NEEDS_MOUNT);
    try {
      const client = await harness.connect(host);
      const used = useUpInodes(host, client, 'exec sleep 300');
      await waitFor(() => processesOf(host).some(line => / sleep 300 $/.test(line)), {
        what: 'the end of the inodes',
      });
      expect(await client.stop('greedy')).toEqual({ how: 'mark' });
      expect((await used).last).toMatchObject({ type: 'ended', code: 143 });
      expect(await client.stop('greedy')).toEqual({ how: 'mark' });
    } finally {
      await unmountSmallDisk(harness, host);
    }
  });

  test('a disk that has room for a part of an attempt is full too', async context => {
    const host = harness.makeHost(shell);
    const { home } = host.account;
    if (!mountSmallDisk(host)) return context.skip(NEEDS_MOUNT);
    try {
      const client = await harness.connect(host);
      await harness.run(client, 'true');
      // What stands prepared dies, and leaves its files; then there is one page for what takes its place.
      await awaitPrepared(host);
      const waiting = processesOf(host).filter(line => / (supervise|child) /.test(line));
      for (const line of waiting) process.kill(Number.parseInt(line, 10), 'SIGKILL');
      writeFileSync(join(home, 'page'), 'one');
      expect(() => writeFileSync(join(home, 'filling'), Buffer.alloc(16 * MiB))).toThrow('ENOSPC');
      rmSync(join(home, 'page'));
      const refused = client.run({ id: 'refused', token: 'one', command: 'true' });
      await expect(refused.next()).rejects.toMatchObject({ code: 'remote_disk_full' });
      rmSync(join(home, 'filling'));
      expect((await harness.run(client, 'echo again')).stdout.toString()).toBe('again\n');
    } finally {
      await unmountSmallDisk(harness, host);
    }
  });
});

test('an empty fence counts as lost, and damaged spools do', async () => {
  const host = harness.makeHost(DASH);
  const client = await harness.connect(host);
  writeFileSync(join(host.account.home, '.windlass/started/empty'), '');
  expect((await follow(client, 'empty')).types).toEqual(['lost']);
  const { id } = await harness.run(client, 'echo whole');
  const [segment = ''] = readdirSync(runDirectory(host, id)).filter(file => file.startsWith('o.'));
  writeFileSync(join(runDirectory(host, id), segment), 'wh');
  expect((await follow(client, id)).types).toEqual(['lost']);
  for (const run of ['empty', id]) await client.forget(run);
});

test('sends no more than the window past what is acknowledged, and other runs go on', async () => {
  const client = await harness.connect(harness.makeHost(DASH));
  const command = `head -c ${3 * WINDOW} /dev/zero`;
  const events = client.run({ id: 'wide', token: 'one', command });
  let read = 0;
  while (read < WINDOW) {
    const { value } = await events.next();
    if (value?.type === 'output') read += value.bytes.length;
  }
  expect(read).toBe(WINDOW);
  // Whatever more had been sent would have come before this run's answer.
  expect((await harness.run(client, 'echo other')).stdout.toString()).toBe('other\n');
  const more = events.next();
  let came = false;
  more.then(() => {
    came = true;
  });
  await client.ping();
  expect(came).toBe(false);
  client.ack('wide', read, 0);
  expect(await more).toMatchObject({ value: { type: 'output', offset: WINDOW } });
  await events.return?.();
  const rest = await follow(client, 'wide', { stdout: 2 * WINDOW, stderr: 0 });
  expect(rest.last).toMatchObject({ type: 'ended', stdoutBytes: 3 * WINDOW });
  expect(rest.stdout.length).toBe(WINDOW);
});

test('a line comes while its command goes on, for each of ten runs that are followed at once', async () => {
  const host = harness.makeHost(DASH);
  const client = await harness.connect(host);
  const seen: number[] = [];
  const follows = Array.from({ length: 10 }, async (_, n) => {
    // It ends only when its line has come.
    const script = `echo here; while ! test -e seen${n}; do sleep 0.02; done`;
    for await (const event of client.run({ id: `line-${n}`, token: 'one', script })) {
      if (event.type !== 'output') continue;
      seen.push(n);
      writeFileSync(join(host.account.home, `seen${n}`), '');
    }
  });
  await Promise.all(follows);
  expect(seen.length).toBe(10);
});

function killSupervisor(directory: string): void {
  const [, , pid] = readFileSync(join(directory, 'supervisor'), 'utf8').split(' ');
  process.kill(Number(pid), 'SIGKILL');
}
