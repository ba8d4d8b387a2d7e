import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { findProgram } from '../../scripts/programs.ts';
import { signalProcess } from '../../servers/processes.ts';
import {
  collect,
  filesOf,
  follow,
  listRuns,
  processesOf,
  readProc,
  runDirectory,
  SHELLS,
  useAgentHarness,
} from '../../test/harness/hosts/agent-harness.ts';
import {
  awaitPrepared,
  mountSmallDisk,
  NEEDS_MOUNT,
  unmountSmallDisk,
  useUpInodes,
} from '../../test/harness/hosts/small-disk.ts';
import { waitFor } from '../../test/harness/wait-for.ts';
import { loadAgentFile } from './agent-file.ts';

const MiB = 1024 * 1024;
const WINDOW = 16 * MiB;
const harness = useAgentHarness();

const DASH = findProgram('dash') ?? '/bin/sh';

test('attempts that died before they were asked for anything do not keep old fences', async () => {
  const host = harness.makeHost(DASH);
  const { name, content } = loadAgentFile();
  const isAlive = '2>/dev/null && is_alive "$pid" "$its_start"\n}\n\n# find_process_limit';
  expect(content.toString().split(isAlive).length).toBe(2);
  const base = join(host.account.home, '.windlass');
  mkdirSync(base, { mode: 0o700 });
  const dead = content
    .toString()
    .replace(isAlive, () => isAlive.replace('is_alive "$pid" "$its_start"', 'false'));
  writeFileSync(join(base, name), dead);
  const client = await harness.connect(host, { shell: DASH });
  await expect(harness.run(client, 'echo never')).rejects.toMatchObject({
    code: expect.any(String),
  });
  const [serve = ''] = readdirSync(join(base, 'serve'));
  const renewed = join(base, 'serve', serve, 'renewed');
  // A birth is not renewed while an attempt is still dying; the next ping asks again.
  const isRenewed = async () => {
    await client.ping();
    return existsSync(renewed);
  };
  await waitFor(isRenewed, { what: 'the renewed birth' });
});

describe.each(SHELLS)('runs under %s', shell => {
  test('a command whose run is removed while its spool is full goes on to its end', async () => {
    const host = harness.makeHost(shell);
    const client = await harness.connect(host, { spoolLimitBytes: 2 * MiB });
    const name = { id: harness.newName(), token: harness.newName() };
    const events = client.run({
      ...name,
      command: `head -c ${12 * MiB} /dev/zero; touch done`,
    });
    expect(await events.next()).toMatchObject({ value: { type: 'running' } });
    const waits = () =>
      processesOf(host).some(line =>
        /pipe_write|sock_alloc_send/.test(readProc(line.split(' ')[0] ?? '', 'wchan')),
      );
    await waitFor(waits, { what: 'a full spool' });
    await harness.close();
    // What its processes write meanwhile keeps a directory from being removed.
    const base = join(host.account.home, '.windlass');
    await waitFor(() => rmSync(base, { recursive: true, force: true }) ?? true, {
      what: 'the removal of all files',
    });
    await waitFor(() => processesOf(host).length === 0, { what: 'the end of all processes' });
    expect(existsSync(join(host.account.home, 'done'))).toBe(true);
  });

  test('a run whose supervisor was killed goes on, also while nobody follows it', async () => {
    const host = harness.makeHost(shell);
    const command =
      'i=0; until test -e go; do i=$((i+1)); echo $i; echo $i >>ledger; sleep 0.01; done; exit 3';
    const ledger = () => readFileSync(join(host.account.home, 'ledger'), 'utf8');
    for (const isFollowed of [true, false]) {
      const client = await harness.connect(host);
      const id = harness.newName();
      const events = client.run({ id, token: harness.newName(), command });
      expect(await events.next()).toMatchObject({ value: { type: 'running' } });
      await waitFor(() => existsSync(join(host.account.home, 'ledger')), {
        what: 'its first line',
      });
      if (!isFollowed) await harness.close();
      const written = ledger().length;
      killSupervisor(runDirectory(host, id));
      await waitFor(() => ledger().length > written + 200, { what: 'more lines' });
      writeFileSync(join(host.account.home, 'go'), '');
      const outcome = isFollowed
        ? await collect({ client, id, events })
        : await follow(await harness.connect(host), id);
      expect(outcome.last).toMatchObject({ type: 'ended', code: 3 });
      expect(outcome.stdout.toString()).toBe(ledger());
      for (const file of ['go', 'ledger']) rmSync(join(host.account.home, file));
    }
  });

  test.each([
    ['copies are killed too', true],
    ['copies go on', false],
  ])(
    'a run whose supervisor was killed prints on by one stream alone; its %s',
    async (_, killed) => {
      const host = harness.makeHost(shell);
      const client = await harness.connect(host);
      const id = harness.newName();
      // More than the reads of one segment, however many bytes each gets.
      const bytes = 48 * MiB;
      const command = `echo begun; until test -e go; do sleep 0.02; done; head -c ${bytes} /dev/zero; exit 3`;
      const events = client.run({ id, token: harness.newName(), command });
      expect(await events.next()).toMatchObject({ value: { type: 'running' } });
      const directory = runDirectory(host, id);
      const segment = join(directory, `o.1${'0'.repeat(15)}`);
      await waitFor(() => statSync(segment).size === 6, { what: 'a line' });
      const first = supervisorOf(directory);
      const outcome = collect({ client, id, events });
      killSupervisor(directory);
      await waitFor(() => supervisorOf(directory) !== first, { what: 'another supervisor' });
      if (killed) {
        // It looks for both before it waits for a note. Commands that look write to a pipe, too, but not to this one.
        const heir = supervisorOf(directory);
        const readsNotes = () => standardInputOf(heir) === join(directory, 'note');
        await waitFor(
          () =>
            readsNotes() &&
            /pipe_read|wait_for_partner|poll|select/.test(readProc(`${heir}`, 'wchan')) &&
            readsNotes(),
          { what: 'the other supervisor to wait' },
        );
        const copies = processesOf(host).filter(line => line.includes(`of=${segment}`));
        for (const line of copies) process.kill(Number.parseInt(line, 10), 'SIGKILL');
        expect(copies).toHaveLength(1);
        await waitFor(() => !processesOf(host).some(line => line.includes(`of=${segment}`)), {
          what: 'the end of the one that was killed',
        });
      }
      writeFileSync(join(host.account.home, 'go'), '');
      const { last, stdout } = await outcome;
      expect(stdout.length).toBe(bytes + 6);
      if (killed) {
        const all = { stdoutBytes: bytes + 6, stderrBytes: 0 };
        const unsure = { code: 3, stdout: 6, stderr: 0, isCut: true, ...all };
        expect(last).toEqual({ type: 'lost', unsure });
      } else expect(last).toMatchObject({ type: 'ended', code: 3 });
    },
  );

  test('a killed supervisor is replaced while nobody follows the run', async () => {
    const host = harness.makeHost(shell);
    const client = await harness.connect(host);
    const id = harness.newName();
    // More than the reads of one segment, however many bytes each gets.
    const bytes = 48 * MiB;
    const command = `until test -e go; do sleep 0.02; done; head -c ${bytes} /dev/zero; exit 3`;
    const events = client.run({ id, token: harness.newName(), command });
    expect(await events.next()).toMatchObject({ value: { type: 'running' } });
    const directory = runDirectory(host, id);
    await harness.close();
    killSupervisor(directory);
    writeFileSync(join(host.account.home, 'go'), '');
    await waitFor(() => readdirSync(directory).includes(`end.3.${bytes}.0`), { what: 'the end' });
    const { last, stdout } = await follow(await harness.connect(host), id);
    expect(last).toMatchObject({ type: 'ended', code: 3 });
    expect(stdout.length).toBe(bytes);
  });

  test('output that waits in the pipe is kept while a successor begins as the command ends', async () => {
    const host = harness.makeHost(shell);
    const { home, env } = host.account;
    const bin = join(home, 'bin');
    mkdirSync(bin);
    const mv = findProgram('mv');
    const slow = `#!/bin/sh\n${mv} "$@"\ncase $2 in */supervisor) until test -e "$HOME/release"; do sleep 0.02; done ;; esac\n`;
    writeFileSync(join(bin, 'mv'), slow, { mode: 0o755 });
    env.PATH = `${bin}:${env.PATH}`;
    const client = await harness.connect(host, { spoolLimitBytes: MiB });
    const id = harness.newName();
    const command = [
      `head -c ${MiB} /dev/zero; n=0`,
      'until test -e go; do n=$((n + 1)); echo; sleep 0.02; done',
      'echo $n >lines; head -c 50000 /dev/zero; exit 3',
    ].join('; ');
    const events = client.run({ id, token: harness.newName(), command });
    // Nothing is acknowledged, so that the spool stays full.
    expect(await events.next()).toMatchObject({ value: { type: 'running' } });
    const directory = runDirectory(host, id);
    const sizes = () =>
      readdirSync(directory)
        .filter(name => name.startsWith('o.1'))
        .map(name => statSync(join(directory, name)).size);
    const isFull = () =>
      sizes().reduce((sum, size) => sum + size, 0) >= MiB &&
      !processesOf(host).some(line => line.includes(`of=${join(directory, 'o.1')}`));
    await waitFor(isFull, { what: 'a full spool' });
    const waiter = Number.parseInt(readFileSync(join(directory, 'waiter'), 'utf8'), 10);
    killSupervisor(directory);
    const has = (name: string) => readdirSync(directory).some(file => file.startsWith(name));
    await waitFor(() => has('heir.'), { what: 'a successor' });
    writeFileSync(join(home, 'go'), '');
    await waitFor(() => has('exit.3') && !existsSync(`/proc/${waiter}`), {
      what: 'the end of the command and of its waiter',
    });
    writeFileSync(join(home, 'release'), '');
    const { last, stdout } = await collect({ client, id, events });
    expect(last).toMatchObject({ type: 'ended', code: 3 });
    const lines = Number(readFileSync(join(home, 'lines'), 'utf8'));
    expect(stdout.length).toBe(MiB + lines + 50_000);
  });

  test('a command whose run is removed while it prints goes on to its end', async () => {
    const host = harness.makeHost(shell);
    const { home } = host.account;
    const client = await harness.connect(host);
    const id = harness.newName();
    const command =
      'until test -e go; do sleep 0.02; done; head -c 40000000 /dev/zero; echo over >finished';
    const events = client.run({ id, token: harness.newName(), command });
    expect(await events.next()).toMatchObject({ value: { type: 'running' } });
    const directory = runDirectory(host, id);
    const segments = ['o', 'e'].map(stream => join(directory, `${stream}.1${'0'.repeat(15)}`));
    await waitFor(() => segments.every(existsSync), { what: 'the files of both streams' });
    rmSync(directory, { recursive: true });
    writeFileSync(join(home, 'go'), '');
    await waitFor(() => existsSync(join(home, 'finished')), { what: 'the end of the command' });
    await waitFor(() => !processesOf(host).some(line => line.includes(directory)), {
      what: 'the end of its supervisor',
    });
  });

  test('dds that do not start for a while are no full disk', async () => {
    const host = harness.makeHost(shell);
    const { home, env } = host.account;
    const bin = join(home, 'bin');
    mkdirSync(bin);
    const failing = `#!/bin/sh
case "$*" in *of=*/runs/*) if test -s "$HOME/failures"; then
  read -r line <"$HOME/failures"
  case $line in 3) : >"$HOME/failures" ;; *) echo $((line + 1)) >"$HOME/failures" ;; esac
  exit 1
fi ;; esac
exec ${findProgram('dd')} "$@"
`;
    writeFileSync(join(bin, 'dd'), failing, { mode: 0o755 });
    env.PATH = `${bin}:${env.PATH}`;
    const client = await harness.connect(host);
    await harness.run(client, 'true');
    writeFileSync(join(home, 'failures'), '1\n');
    const { last, stdout } = await harness.run(client, 'echo begun; sleep 0.5; echo over');
    expect(last).toMatchObject({ type: 'ended', code: 0 });
    expect(stdout.toString()).toBe('begun\nover\n');
    expect(readFileSync(join(home, 'failures'), 'utf8')).toBe('');
  });

  test('a prepared attempt whose supervisor was killed leaves nothing behind', async () => {
    const host = harness.makeHost(shell);
    const client = await harness.connect(host);
    const runs = join(host.account.home, '.windlass/runs');
    const find = () => readdirSync(runs).find(name => existsSync(join(runs, name, 'ready')));
    const attempt = await waitFor(find, { what: 'an attempt' });
    const supervisor = supervisorOf(join(runs, attempt));
    process.kill(supervisor, 'SIGKILL');
    await waitFor(() => readProc(`${supervisor}`, 'cmdline') === '', { what: 'its death' });
    expect((await harness.run(client, 'echo works')).stdout.toString()).toBe('works\n');
    // As its child and its waiter have it in their arguments.
    const names = [attempt, attempt.replace(/-(\d+)$/, ' $1')];
    const lives = () => processesOf(host).some(line => names.some(name => line.includes(name)));
    await waitFor(() => !lives() && !existsSync(join(runs, attempt)), { what: 'its end' });
  });

  test('after a killed supervisor the spool has its limit, whatever was sent before', async () => {
    const host = harness.makeHost(shell);
    const limit = 2 * MiB;
    const client = await harness.connect(host, { spoolLimitBytes: limit });
    const id = harness.newName();
    const sent = 40 * MiB;
    const command = `head -c ${sent} /dev/zero; until test -e go; do sleep 0.02; done; head -c ${sent} /dev/zero >&2; exit 3`;
    const events = client.run({ id, token: harness.newName(), command });
    let received = 0;
    const reading = (async () => {
      for await (const event of events) {
        if (event.type !== 'output') continue;
        received += event.bytes.length;
        client.ack(id, received, 0);
      }
    })().catch(() => {});
    await waitFor(() => received === sent, { what: 'all of the first stream' });
    const directory = runDirectory(host, id);
    const sizeOf = (stream: string) =>
      readdirSync(directory)
        .filter(name => name.startsWith(`${stream}.1`))
        .reduce((sum, name) => sum + statSync(join(directory, name)).size, 0);
    await waitFor(() => sizeOf('o') < limit, { what: 'what was sent to be removed' });
    const first = supervisorOf(directory);
    killSupervisor(directory);
    await waitFor(() => supervisorOf(directory) !== first, { what: 'another supervisor' });
    await harness.close();
    await reading;
    writeFileSync(join(host.account.home, 'go'), '');
    // Nothing comes for a second, or all has come.
    let [size, since] = [-1, 0];
    const isStill = () => {
      if (size !== sizeOf('e')) since = performance.now();
      size = sizeOf('e');
      return size > limit / 2 && performance.now() - since > 1_000;
    };
    await waitFor(isStill, { what: 'the command to be blocked' });
    expect(sizeOf('e')).toBeLessThan(2 * limit);
    const again = await harness.connect(host);
    let errors = 0;
    for await (const event of again.follow({ id, stdout: received, stderr: 0 })) {
      if (event.type === 'ended') expect(event.code).toBe(3);
      if (event.type !== 'output') continue;
      errors += event.bytes.length;
      again.ack(id, received, errors);
    }
    expect(errors).toBe(sent);
  });

  test('a run whose waiter was killed goes on to its end, whose status is unknown', async () => {
    const host = harness.makeHost(shell);
    const client = await harness.connect(host);
    const id = harness.newName();
    const command =
      'echo begun; until test -e go; do sleep 0.02; done; echo over; echo e >&2; touch ran';
    const events = client.run({ id, token: harness.newName(), command });
    expect(await events.next()).toMatchObject({ value: { type: 'running' } });
    const waiter = Number.parseInt(
      readFileSync(join(runDirectory(host, id), 'waiter'), 'utf8'),
      10,
    );
    process.kill(waiter, 'SIGKILL');
    writeFileSync(join(host.account.home, 'go'), '');
    const outcome = await collect({ client, id, events });
    expect(outcome.last).toEqual({
      type: 'lost',
      unsure: { stdout: 11, stderr: 2, isCut: false, stdoutBytes: 11, stderrBytes: 2 },
    });
    expect(outcome.stdout.toString()).toBe('begun\nover\n');
    expect(outcome.stderr.toString()).toBe('e\n');
    expect(existsSync(join(host.account.home, 'ran'))).toBe(true);
    expect((await follow(client, id)).last).toEqual(outcome.last);
  });

  test('a supervisor whose waiter was killed reads what it is told, which would block who tells it', async () => {
    const host = harness.makeHost(shell);
    const client = await harness.connect(host);
    const id = harness.newName();
    const command = 'exec >log 2>&1; until test -e go; do sleep 0.02; done';
    const events = client.run({ id, token: harness.newName(), command });
    expect(await events.next()).toMatchObject({ value: { type: 'running' } });
    const run = runDirectory(host, id);
    const copies = () => processesOf(host).filter(line => /of=.*\/runs\//.test(line));
    await waitFor(() => copies().length === 2, { what: 'what copies both streams' });
    process.kill(Number.parseInt(readFileSync(join(run, 'waiter'), 'utf8'), 10), 'SIGKILL');
    await waitFor(() => copies().length === 0, { what: 'the end of both streams' });
    // The supervisor alone, without its children.
    const supervisor = `${supervisorOf(run)}/task/${supervisorOf(run)}`;
    const readBytes = () => Number(/^rchar: (\d+)/.exec(readProc(supervisor, 'io'))?.[1]);
    const before = readBytes();
    const told = 'x\n'.repeat(5_000);
    writeFileSync(join(run, 'note'), told, { flag: 'r+' });
    await waitFor(() => readBytes() >= before + told.length, {
      what: 'its reading',
      timeoutMs: 15_000,
    });
    writeFileSync(join(host.account.home, 'go'), '');
    const { last } = await collect({ client, id, events });
    expect(last).toMatchObject({ type: 'lost', unsure: { isCut: false } });
  });

  test.each([
    ['goes on', 'over\n'],
    ['prints no more, and may have lost its last bytes', ''],
  ])('a run whose output was being copied by a process that was killed %s', async (_, last) => {
    const host = harness.makeHost(shell);
    const client = await harness.connect(host);
    const id = harness.newName();
    const command = `echo begun; until test -e go; do sleep 0.02; done; printf '${last}'; exit 4`;
    const events = client.run({ id, token: harness.newName(), command });
    expect(await events.next()).toMatchObject({ value: { type: 'running' } });
    const segment = join(runDirectory(host, id), `o.1${'0'.repeat(15)}`);
    await waitFor(() => statSync(segment).size === 6, { what: 'a line' });
    const copies = () => processesOf(host).filter(line => line.includes(`of=${segment}`));
    expect(copies()).toHaveLength(1);
    process.kill(Number.parseInt(copies()[0] ?? '', 10), 'SIGKILL');
    // One that waits for input while it is killed still reads what comes before it ends.
    await waitFor(() => copies().length === 0, { what: 'the end of the one that was killed' });
    writeFileSync(join(host.account.home, 'go'), '');
    const outcome = await collect({ client, id, events });
    const stdoutBytes = 6 + last.length;
    expect(outcome.last).toEqual({
      type: 'lost',
      unsure: { code: 4, stdout: 6, stderr: 0, isCut: true, stdoutBytes, stderrBytes: 0 },
    });
    expect(outcome.stdout.toString()).toBe(`begun\n${last}`);
    const rest = await follow(client, id, { stdout: stdoutBytes, stderr: 0 });
    expect(rest.last).toEqual(outcome.last);
  });

  test('a stop that meets nobody waits for the record of the end, which is kept', async () => {
    const host = harness.makeHost(shell);
    const client = await harness.connect(host);
    const id = harness.newName();
    const command = 'echo begun; while ! test -e go; do sleep 0.02; done; echo over; exit 3';
    const events = client.run({ id, token: harness.newName(), command });
    expect(await events.next()).toMatchObject({ value: { type: 'running' } });
    const supervisor = supervisorOf(runDirectory(host, id));
    process.kill(supervisor, 'SIGSTOP');
    writeFileSync(join(host.account.home, 'go'), '');
    const child = Number.parseInt(readFileSync(join(runDirectory(host, id), 'child'), 'utf8'), 10);
    await waitFor(() => !/^\d+ \(.*\) [^ZX] /.test(readProc(`${child}`, 'stat')), {
      what: 'the end of the command',
    });
    const stopped = client.stop(id);
    // Requests are served in order, so the stop has begun.
    await client.ping();
    process.kill(supervisor, 'SIGCONT');
    expect(await stopped).toEqual({ result: 'ended' });
    const outcome = await collect({ client, id, events });
    expect(outcome.last).toMatchObject({ type: 'ended', code: 3 });
    expect(outcome.stdout.toString()).toBe('begun\nover\n');
    expect(await client.stop(id)).toEqual({ result: 'ended' });
  });

  test('a run that was stopped before it started never starts', async () => {
    const host = harness.makeHost(shell);
    const client = await harness.connect(host);
    const id = harness.newName();
    expect(await client.stop(id)).toEqual({ result: 'never_started' });
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
    // ksh ignores a signal from its own EXIT trap, without an agent too.
    expect(result.last).toMatchObject({ type: 'ended', code: shell.endsWith('/ksh') ? 0 : 143 });
  });

  test('a forgotten run does not start again, and its fence is removed once no client can request it', async () => {
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
    // This serve starts later, so its client knows that the run has ended. busybox compares whole seconds.
    const { mtimeMs } = statSync(join(host.account.home, '.windlass/started', id));
    const nextSecond = (Math.floor(mtimeMs / 1_000) + 1) * 1_000 + 20;
    await waitFor(() => Date.now() > nextSecond, { what: 'a later second' });
    const third = await harness.connect(host);
    second.close();
    await second.closed;
    await third.ping();
    await waitFor(() => !filesOf(host).includes(`started/${id}`), { what: 'the end of the fence' });
  });

  // Under bash a single signal was lost in one of eight.
  test('a killed emitter ends its serve', { repeats: 5 }, async () => {
    const host = harness.makeHost(shell);
    const client = await harness.connect(host);
    await client.ping();
    const serve = host.pids.at(-1);
    const children = execFileSync('ps', ['-o', 'pid=', '--ppid', String(serve)]).toString();
    // The emitter reads the fifo. PIDs do not tell the order, because they wrap around.
    const emitter = children
      .trim()
      .split(/\s+/)
      .find(pid => readlinkSync(`/proc/${pid}/fd/0`).endsWith('/fifo'));
    process.kill(Number(emitter), 'SIGKILL');
    await client.closed;
    await waitFor(() => processesOf(host).length === 0, { what: 'the end of every process' });
    expect(filesOf(host).filter(file => file.includes('/'))).toEqual([]);
  });

  test('a serve that is told to end while it takes up children that have ended does end', async () => {
    const host = harness.makeHost(shell);
    for (const microseconds of [25, 50, 100, 200, 400]) {
      const client = await harness.connect(host);
      // While a fence is empty, each stop of its run is a child of the serve that looks at it.
      const fence = join(host.account.home, '.windlass/started', `slow-${microseconds}`);
      writeFileSync(fence, '');
      const stops = Array.from({ length: 40 }, () => client.stop(`slow-${microseconds}`));
      const ended = Promise.allSettled(stops);
      await client.ping();
      const serve = host.pids.at(-1) ?? 0;
      process.kill(serve, 'SIGSTOP');
      writeFileSync(fence, '-stopped -\n');
      const count = (state: RegExp) =>
        execFileSync('ps', ['-o', 'stat=', '--ppid', String(serve)])
          .toString()
          .split('\n')
          .filter(one => state.test(one)).length;
      await waitFor(() => count(/^Z/) >= stops.length, { what: 'the end of its children' });
      process.kill(serve, 'SIGCONT');
      const continued = performance.now();
      while (performance.now() - continued < microseconds / 1_000);
      process.kill(serve, 'SIGTERM');
      // bash may see a signal that comes just before it reads only with the next line; the client pings every 30 s.
      client.ping().catch(() => {});
      await waitFor(() => !existsSync(`/proc/${serve}`), { what: 'its end' });
      await Promise.all([client.closed, ended]);
    }
    await waitFor(() => processesOf(host).length === 0, { what: 'the end of every process' });
  });

  test('a serve that was killed with its emitter is cleaned up by the next one', async () => {
    const host = harness.makeHost(shell);
    const client = await harness.connect(host);
    const running = client.run({ id: 'survivor', token: 'one', command: 'sleep 300' });
    await running.next();
    // Short-lived children may have exited.
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

  test('a full disk ends the run as such, with all output written before', async context => {
    const host = harness.makeHost(shell);
    const { home } = host.account;
    if (!mountSmallDisk(host)) return context.skip(NEEDS_MOUNT);
    try {
      const client = await harness.connect(host);
      const script = [
        'trap : TERM PIPE',
        'echo before; echo warned >&2',
        'for stream in o e; do',
        '  while ! [ -s "$WINDLASS_RUN/$stream.1000000000000000" ]; do sleep 0.02; done',
        'done',
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
      const stderrBytes = result.stderr.length;
      // A stream whose own bytes were stored before the other filled the disk is as long as it was.
      expect(result.stderr.toString()).toMatch(/^warned\n/);
      const sizes = { stdoutBytes, stderrBytes };
      expect(result.last).toMatchObject({ type: 'ended', code: -1, ...sizes, diskFull: true });
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

  test('the end is recorded even if no empty file can be created', async context => {
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

  test('a stop is recorded even if no empty file can be created', async context => {
    const host = harness.makeHost(shell);
    if (!mountSmallDisk(host, 'nr_inodes=200')) return context.skip(NEEDS_MOUNT);
    try {
      const client = await harness.connect(host);
      const used = useUpInodes(host, client, 'exec sleep 300');
      await waitFor(() => processesOf(host).some(line => / sleep 300 $/.test(line)), {
        what: 'the end of the inodes',
      });
      expect(await client.stop('greedy')).toEqual({ result: 'killed' });
      expect((await used).last).toMatchObject({ type: 'ended', code: 143 });
      expect(await client.stop('greedy')).toEqual({ result: 'killed' });
    } finally {
      await unmountSmallDisk(harness, host);
    }
  });

  test('a disk with space for a part of an attempt counts as full', async context => {
    const host = harness.makeHost(shell);
    const { home } = host.account;
    if (!mountSmallDisk(host)) return context.skip(NEEDS_MOUNT);
    try {
      const client = await harness.connect(host);
      await harness.run(client, 'true');
      // The prepared attempts are killed and leave their files; then one page is left for the next attempt.
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

test('a run keeps the agent file that its next supervisor is started from in use', async () => {
  const host = harness.makeHost(DASH);
  const client = await harness.connect(host);
  const events = client.run({
    id: 'long',
    token: 'one',
    command: 'until test -e go; do sleep 0.02; done',
  });
  expect(await events.next()).toMatchObject({ value: { type: 'running' } });
  await harness.close();
  const file = join(host.account.home, '.windlass', loadAgentFile().name);
  utimesSync(file, 1, 1);
  await waitFor(() => statSync(file).mtimeMs > 1_000, { what: 'a new time' });
  writeFileSync(join(host.account.home, 'go'), '');
});

test('an empty fence and a damaged spool count as lost', async () => {
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

test('output that was cut off while it is followed counts as lost', async () => {
  const host = harness.makeHost(DASH);
  const client = await harness.connect(host);
  const command = `head -c ${2 * WINDOW} /dev/zero`;
  const events = client.run({ id: 'cut', token: 'one', command });
  let read = 0;
  while (read < WINDOW) {
    const { value } = await events.next();
    if (value?.type === 'output') read += value.bytes.length;
  }
  const run = runDirectory(host, 'cut');
  await waitFor(() => readdirSync(run).some(name => name.startsWith('end.')), {
    what: 'the record of the end',
  });
  await client.ping();
  for (const name of readdirSync(run).filter(one => one.startsWith('o.')))
    writeFileSync(join(run, name), '');
  client.ack('cut', read, 0);
  expect(await events.next()).toMatchObject({ value: { type: 'lost' } });
});

test('sends no more than the window past the acknowledged offset, and other runs go on', async () => {
  const client = await harness.connect(harness.makeHost(DASH));
  const command = `head -c ${3 * WINDOW} /dev/zero`;
  const events = client.run({ id: 'wide', token: 'one', command });
  let read = 0;
  while (read < WINDOW) {
    const { value } = await events.next();
    if (value?.type === 'output') read += value.bytes.length;
  }
  expect(read).toBe(WINDOW);
  // More output would have arrived before this run's.
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

test('a line arrives while its command runs, for each of ten runs that are followed at once', async () => {
  const host = harness.makeHost(DASH);
  const client = await harness.connect(host);
  const seen: number[] = [];
  const follows = Array.from({ length: 10 }, async (_, n) => {
    // It ends only after its line has arrived.
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

function supervisorOf(directory: string): number {
  const [, , pid] = readFileSync(join(directory, 'supervisor'), 'utf8').split(' ');
  return Number(pid);
}

function standardInputOf(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/fd/0`);
  } catch {
    return undefined;
  }
}

function killSupervisor(directory: string): void {
  process.kill(supervisorOf(directory), 'SIGKILL');
}
