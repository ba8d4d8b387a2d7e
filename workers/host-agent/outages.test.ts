import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import {
  baseOf,
  collect,
  follow,
  processesOf,
  runDirectory,
  SHELLS,
  useAgentHarness,
} from '../../test/harness/hosts/agent-harness.ts';
import type { LocalExec } from '../../test/harness/hosts/local-exec.ts';
import { waitFor } from '../../test/harness/wait-for.ts';
import { loadAgentFile } from './agent-file.ts';
import type { RunEvent } from './protocol/run-event.ts';

const harness = useAgentHarness();

/** Starts a run that goes on until there is a file `go`. */
async function startWaiting(host: LocalExec, then = 'echo done', spoolLimitBytes = 2 ** 30) {
  const client = await harness.connect(host, { spoolLimitBytes });
  const id = harness.newName();
  const command = `while ! test -e go; do sleep 0.02; done; ${then}; exit 3`;
  const events = client.run({ id, token: 'one', command });
  expect(await events.next()).toMatchObject({ value: { type: 'running' } });
  return { client, id, events, run: runDirectory(host, id) };
}

/** Like startWaiting(), with nobody who follows the run. */
async function leaveWaiting(host: LocalExec, then?: string, spoolLimitBytes?: number) {
  const { client, id, run } = await startWaiting(host, then, spoolLimitBytes);
  client.close();
  await client.closed;
  return { id, run };
}

/** The most unacknowledged output of one run. */
const WINDOW = 16 << 20;
/** Reads a window of an ended run's output; returns how many bytes came. */
async function readWindow(events: AsyncIterator<RunEvent>, run: string): Promise<number> {
  let read = 0;
  while (read < WINDOW) {
    const { value } = await events.next();
    if (value?.type === 'output') read += value.bytes.length;
  }
  const isEnded = () => readdirSync(run).some(name => name.startsWith('end.'));
  await waitFor(isEnded, { what: 'the record of the end' });
  return read;
}

/** How long the home is unreachable, in milliseconds. */
const OUTAGE_MS = 400;

/** Renames the folder away until the returned function is called. */
function takeAway(host: LocalExec, folder: string): () => void {
  const away = join(baseOf(host), 'away');
  renameSync(join(baseOf(host), folder), away);
  return () => renameSync(away, join(baseOf(host), folder));
}

/** Whether a process copies what the command prints. */
const copies = (host: LocalExec) => processesOf(host).some(line => /of=.*\/o\.1/.test(line));

const spooledIn = (run: string) =>
  readdirSync(run)
    .filter(name => name.startsWith('o.1'))
    .reduce((sum, name) => sum + statSync(join(run, name)).size, 0);

/** Makes this host's agent write a file `held` before the line, and wait there while there is a file `hold`. */
function holdBefore(host: LocalExec, line: string): void {
  const { name, content: bytes } = loadAgentFile();
  const content = bytes.toString();
  expect(content.split(line).length).toBe(2);
  const hold = 'true >~/held; while [ -e ~/hold ]; do sleep 0.02; done\n';
  mkdirSync(baseOf(host), { mode: 0o700 });
  writeFileSync(
    join(baseOf(host), name),
    content.replace(line, () => hold + line),
  );
}

const letEnd = (host: LocalExec) => writeFileSync(join(host.account.home, 'go'), '');

describe.each(SHELLS)('what cannot be reached for a moment is not missing, under %s', shell => {
  test('an agent that ends before it asked to start a command says why none can be started', async () => {
    const host = harness.makeHost(shell);
    holdBefore(host, '    if [ $tries -gt 6000 ]; then return 1; fi\n');
    const client = await harness.connect(host, { shell });
    await harness.run(client, 'true');
    const [serve = ''] = readdirSync(join(baseOf(host), 'serve'));
    const { home } = host.account;
    rmSync(join(home, 'held'), { force: true });
    writeFileSync(join(home, 'hold'), '');
    renameSync(baseOf(host), join(home, 'away'));
    writeFileSync(baseOf(host), '');
    const refused = client.run({ id: 'refused', token: 'one', command: 'true' }).next();
    const error = refused.catch((reason: unknown) => reason);
    await waitFor(() => existsSync(join(home, 'held')), { what: 'a wait for an attempt' });
    process.kill(Number(serve.split('-')[1]), 'SIGTERM');
    const message = expect.stringContaining('Not a directory');
    expect(await error).toMatchObject({ code: 'agent_problem', message });
    await client.closed;
    // Its processes end where they find their files again.
    rmSync(baseOf(host));
    renameSync(join(home, 'away'), baseOf(host));
  });

  test('a sweep keeps the fence of a run whose directory it does not find', async () => {
    const host = harness.makeHost(shell);
    const { client, id } = await startWaiting(host);
    client.close();
    await client.closed;
    renameSync(join(baseOf(host), 'runs'), join(baseOf(host), 'away'));
    const meanwhile = await harness.connect(host);
    meanwhile.close();
    await meanwhile.closed; // after its sweep
    rmSync(join(baseOf(host), 'runs'), { recursive: true });
    renameSync(join(baseOf(host), 'away'), join(baseOf(host), 'runs'));
    letEnd(host);
    expect((await follow(await harness.connect(host), id)).last).toMatchObject({ code: 3 });
  });

  test.each(['started', 'runs'])(
    'a command that ends while `%s` is unreachable has its end recorded, and keeps its output',
    async folder => {
      const host = harness.makeHost(shell);
      const { id, run } = await leaveWaiting(host);
      const child = readFileSync(join(run, 'child'), 'utf8').split(' ')[0];
      const comesBack = takeAway(host, folder);
      letEnd(host);
      const isEnded = () => !processesOf(host).some(line => line.startsWith(`${child} `));
      await waitFor(isEnded, { what: 'the end of the command' });
      await delay(OUTAGE_MS);
      comesBack();
      const { stdout, last } = await follow(await harness.connect(host), id);
      expect([stdout.toString(), last]).toEqual(['done\n', expect.objectContaining({ code: 3 })]);
    },
  );

  test('a command that fills a segment meanwhile goes on, and keeps its output', async () => {
    const host = harness.makeHost(shell);
    const { id } = await leaveWaiting(host, 'seq 150000', 2 ** 21);
    const comesBack = takeAway(host, 'runs');
    letEnd(host);
    await waitFor(() => !copies(host), { what: 'a full segment' });
    await delay(OUTAGE_MS);
    comesBack();
    const { stdout, last } = await follow(await harness.connect(host), id);
    expect(stdout.toString()).toBe(
      Array.from({ length: 150_000 }, (_, n) => `${n + 1}\n`).join(''),
    );
    expect(last).toMatchObject({ code: 3 });
  });

  test('a command whose segments cannot be made meanwhile is not stopped', async () => {
    const host = harness.makeHost(shell);
    const held = join(host.account.home, 'held');
    const programs = harness.makePath({});
    const dd = `#!/bin/sh\nwhile test -e '${held.replaceAll("'", "'\\''")}'; do sleep 0.02; done\nexec /bin/dd "$@"\n`;
    writeFileSync(join(programs, 'dd'), dd, { mode: 0o755 });
    host.account.env = { ...host.account.env, PATH: `${programs}:${host.account.env.PATH}` };
    writeFileSync(held, '');
    const { id } = await leaveWaiting(host);
    const comesBack = takeAway(host, 'runs');
    rmSync(held);
    await waitFor(() => !copies(host), { what: 'the end of what copies its output' });
    await delay(OUTAGE_MS);
    comesBack();
    letEnd(host);
    const { stdout, last } = await follow(await harness.connect(host), id);
    expect([stdout.toString(), last]).toEqual(['done\n', expect.objectContaining({ code: 3 })]);
  });

  test('a command that waits for its output to be read goes on', async () => {
    const host = harness.makeHost(shell);
    const bytes = 5_000_000;
    const { id, run } = await leaveWaiting(host, `head -c ${bytes} /dev/zero`, 2 ** 20);
    letEnd(host);
    await waitFor(() => spooledIn(run) >= 2 ** 20, { what: 'a full spool' });
    const comesBack = takeAway(host, 'runs');
    await delay(OUTAGE_MS);
    comesBack();
    const { stdout, last } = await follow(await harness.connect(host), id);
    expect([stdout.length, last]).toEqual([bytes, expect.objectContaining({ code: 3 })]);
  });

  test('a run whose output is unreachable when more is asked for is not lost', async () => {
    const host = harness.makeHost(shell);
    const bytes = WINDOW + 3_000_000;
    const { client, id, events, run } = await startWaiting(host, `head -c ${bytes} /dev/zero`);
    letEnd(host);
    const read = await readWindow(events, run);
    await client.ping();
    const comesBack = takeAway(host, 'runs');
    client.ack(id, read, 0);
    await expect(events.next()).rejects.toMatchObject({ code: 'remote_connection_failed' });
    await client.closed;
    comesBack();
    const from = { stdout: read, stderr: 0 };
    const { stdout, last } = await follow(await harness.connect(host), id, from);
    expect([read + stdout.length, last]).toEqual([bytes, expect.objectContaining({ code: 3 })]);
  });

  test('the run alone is lost whose directory is removed while more of it is asked for', async () => {
    const host = harness.makeHost(shell);
    const bytes = WINDOW + 3_000_000;
    const { client, id, events, run } = await startWaiting(host, `head -c ${bytes} /dev/zero`);
    const command = 'while ! test -e on; do sleep 0.02; done; echo on';
    const other = client.run({ id: 'other', token: 'one', command });
    expect(await other.next()).toMatchObject({ value: { type: 'running' } });
    letEnd(host);
    const read = await readWindow(events, run);
    await client.ping();
    rmSync(run, { recursive: true });
    client.ack(id, read, 0);
    expect(await events.next()).toMatchObject({ value: { type: 'lost' } });
    writeFileSync(join(host.account.home, 'on'), '');
    const { stdout, last } = await collect({ client, id: 'other', events: other });
    expect([stdout.toString(), last]).toEqual(['on\n', expect.objectContaining({ code: 0 })]);
  });

  test('a run whose output leaves while it is measured is not lost', async () => {
    const host = harness.makeHost(shell);
    const programs = harness.makePath({});
    // Prints what `wc` prints when the home leaves between two segments.
    const wc = `#!/bin/sh
case $* in *o.1*o.1*)
  if test -e ~/leave; then
    /usr/bin/wc -c "$2"
    mv ~/.windlass/runs ~/.windlass/away
    exit 1
  fi ;;
esac
exec /usr/bin/wc "$@"
`;
    writeFileSync(join(programs, 'wc'), wc, { mode: 0o755 });
    host.account.env = { ...host.account.env, PATH: `${programs}:${host.account.env.PATH}` };
    const leave = join(host.account.home, 'leave');
    const bytes = 600_000;
    const { id, run } = await leaveWaiting(host, `head -c ${bytes} /dev/zero`, 2 ** 21);
    letEnd(host);
    const isEnded = () => readdirSync(run).some(name => name.startsWith('end.'));
    await waitFor(isEnded, { what: 'the record of the end' });
    writeFileSync(leave, '');
    const meanwhile = await harness.connect(host);
    await expect(follow(meanwhile, id)).rejects.toMatchObject({
      code: 'remote_connection_failed',
    });
    await meanwhile.closed;
    rmSync(leave);
    renameSync(join(baseOf(host), 'away'), join(baseOf(host), 'runs'));
    const { stdout, last } = await follow(await harness.connect(host), id);
    expect([stdout.length, last]).toEqual([bytes, expect.objectContaining({ code: 3 })]);
  });

  test('output that is unreachable just when it is copied is not replaced by what follows it', async () => {
    const host = harness.makeHost(shell);
    const programs = harness.makePath({});
    const dd = '#!/bin/sh\ncase $* in *iflag*) exit 1 ;; esac\nexec /bin/dd "$@"\n';
    const tail =
      '#!/bin/sh\ncd ~/.windlass && mv runs away\n/usr/bin/tail "$@"\ncode=$?\nmv away runs\nexit $code\n';
    writeFileSync(join(programs, 'dd'), dd, { mode: 0o755 });
    writeFileSync(join(programs, 'tail'), tail, { mode: 0o755 });
    host.account.env = { ...host.account.env, PATH: `${programs}:${host.account.env.PATH}` };
    const { client, id, events } = await startWaiting(host, 'echo done; sleep 0.2');
    letEnd(host);
    const { stdout, last } = await collect({ client, id, events });
    expect([stdout.toString(), last]).toEqual(['done\n', expect.objectContaining({ code: 3 })]);
  });

  test('a successor supervisor writes behind what was spooled', async () => {
    const host = harness.makeHost(shell);
    const { home } = host.account;
    holdBefore(host, 'find_segments "$1"\n');
    const printed = 600_000;
    const client = await harness.connect(host, { shell, spoolLimitBytes: 2 ** 21 });
    const id = harness.newName();
    const command = `head -c ${printed} /dev/zero; while ! test -e go; do sleep 0.02; done; echo done; exit 3`;
    const events = client.run({ id, token: 'one', command });
    expect(await events.next()).toMatchObject({ value: { type: 'running' } });
    const run = runDirectory(host, id);
    await waitFor(() => spooledIn(run) === printed, { what: 'the output' });
    client.close();
    await client.closed;
    writeFileSync(join(home, 'hold'), '');
    // First the supervisor, so that nobody starts another copy.
    const supervisor = readFileSync(join(run, 'supervisor'), 'utf8').split(' ')[2];
    process.kill(Number(supervisor), 'SIGKILL');
    for (const line of processesOf(host).filter(one => /of=.*\/[oe]\.1/.test(one)))
      process.kill(Number.parseInt(line, 10), 'SIGKILL');
    await waitFor(() => !copies(host), { what: 'the end of what copies its output' });
    letEnd(host);
    await waitFor(() => existsSync(join(home, 'held')), { what: 'a successor' });
    const comesBack = takeAway(host, 'runs');
    rmSync(join(home, 'hold'));
    await delay(OUTAGE_MS);
    comesBack();
    const { stdout, last } = await follow(await harness.connect(host), id);
    expect(stdout.equals(Buffer.concat([Buffer.alloc(printed), Buffer.from('done\n')]))).toBe(true);
    expect(last).toMatchObject({ code: 3 });
  });

  test.each([
    ['exit status', '  if ! find_exit', { type: 'ended', code: 3 }],
    ['gap in the output', '  find_cut o', { type: 'lost', unsure: { isCut: true, stdout: 0 } }],
  ])('the recorded %s is in the record of the end', async (what, line, expected) => {
    const host = harness.makeHost(shell);
    const { home } = host.account;
    holdBefore(host, line);
    writeFileSync(join(home, 'hold'), '');
    const client = await harness.connect(host, { shell });
    const id = harness.newName();
    const command = 'while ! test -e go; do sleep 0.02; done; exit 3';
    const events = client.run({ id, token: 'one', command });
    expect(await events.next()).toMatchObject({ value: { type: 'running' } });
    const run = runDirectory(host, id);
    client.close();
    await client.closed;
    if (what !== 'exit status') {
      await waitFor(() => copies(host), { what: 'what copies its output' });
      const copy = processesOf(host).find(one => /of=.*\/o\.1/.test(one)) ?? '';
      process.kill(Number.parseInt(copy, 10), 'SIGKILL');
    }
    letEnd(host);
    await waitFor(() => existsSync(join(home, 'held')), { what: 'the supervisor to end' });
    if (what !== 'exit status') expect(existsSync(join(run, 'cut.o.0'))).toBe(true);
    const comesBack = takeAway(host, 'runs');
    rmSync(join(home, 'hold'));
    await delay(OUTAGE_MS);
    comesBack();
    await waitFor(() => readdirSync(run).some(name => /^(end|unsure)\./.test(name)), {
      what: 'the record of the end',
    });
    expect((await follow(await harness.connect(host), id)).last).toMatchObject(expected);
  });

  test('a run whose directory comes back is not lost', async () => {
    const host = harness.makeHost(shell);
    const { id, run } = await startWaiting(host);
    const other = await harness.connect(host);
    renameSync(run, `${run}.away`);
    const followed = follow(other, id);
    await delay(OUTAGE_MS);
    renameSync(`${run}.away`, run);
    letEnd(host);
    expect((await followed).last).toMatchObject({ code: 3 });
  });

  test('a command that did not reach the host whole is not started', async () => {
    const host = harness.makeHost(shell, { text: 'echo from the account' });
    const { name, content: bytes } = loadAgentFile();
    const content = bytes.toString();
    const written = 'printf \'text=%s\\nwhole=y\\n\' "$5" >"$dir/cmd"';
    expect(content.split(written).length).toBe(2);
    mkdirSync(baseOf(host), { mode: 0o700 });
    writeFileSync(
      join(baseOf(host), name),
      content.replace(written, () => 'true >"$dir/cmd"'),
    );
    const client = await harness.connect(host, { shell });
    const events = client.run({ id: 'once', token: 'one', command: 'echo right' });
    await expect(collect({ client, id: 'once', events })).rejects.toMatchObject({
      code: 'remote_disk_full',
    });
    expect(existsSync(join(baseOf(host), 'started/once'))).toBe(false);
  });
});
