import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { findProgram } from '../../scripts/programs.ts';
import {
  collect,
  processesOf,
  readProc,
  runDirectory,
  SHELLS,
  useAgentHarness,
} from '../../test/harness/hosts/agent-harness.ts';
import type { LocalExec } from '../../test/harness/hosts/local-exec.ts';
import { describeUnless, missingPrograms } from '../../test/harness/skip.ts';
import { waitFor } from '../../test/harness/wait-for.ts';
import { loadAgentFile } from './agent-file.ts';
import type { AgentClient } from './client.ts';

const harness = useAgentHarness();

interface Attempt {
  directory: string;
  supervisor: number;
  /** The process that waits to become the command. */
  child: number;
}

/** The attempt that this host's first serve has prepared. */
const awaitAttempt = (host: LocalExec) => waitFor(() => findAttempt(host), { what: 'an attempt' });

function findAttempt(host: LocalExec): Attempt | undefined {
  const runs = join(host.account.home, '.windlass/runs');
  const [name] = readdirSync(runs);
  if (!name || !existsSync(join(runs, name, 'ready'))) return undefined;
  const directory = join(runs, name);
  const read = (file: string) => readFileSync(join(directory, file), 'utf8').split(' ');
  return { directory, supervisor: Number(read('supervisor')[2]), child: Number(read('child')[0]) };
}

/** Waits until the first serve has checked its runs, at every tenth tick; each tick writes one of two stamps. */
async function awaitLook(host: LocalExec): Promise<void> {
  const serve = join(host.account.home, '.windlass/serve');
  const [name = ''] = readdirSync(serve);
  const seen = new Set<string>();
  const look = () => {
    for (const stamp of ['stamp.a', 'stamp.b'])
      seen.add(stamp + statSync(join(serve, name, stamp)).mtimeMs);
    return seen.size > 24;
  };
  await waitFor(look, { what: 'two looks', intervalMs: 5 });
}

/**
 * A host whose agent's processes pause before this line while there is a file `hold`, by default in their attempt's
 * directory. They ignore SIGPIPE, as start-up files may have it; otherwise they would die when they report to a dead
 * supervisor.
 */
function makeHeldHost(shell: string, line: string, file = '$dir/hold'): LocalExec {
  const host = harness.makeHost(shell);
  const { home } = host.account;
  const content = loadAgentFile().content.toString();
  expect(content.split(line).length).toBe(2);
  const hold = `  trap '' PIPE\n  while [ -e "${file}" ]; do sleep 0.02; done\n`;
  mkdirSync(join(home, '.windlass'), { mode: 0o700 });
  writeFileSync(
    join(home, '.windlass', loadAgentFile().name),
    content.replace(line, () => hold + line),
  );
  return host;
}

/** Requests a run, whose child is paused. */
async function startHeld(host: LocalExec) {
  const client = await harness.connect(host, { shell: host.account.shell });
  const attempt = await awaitAttempt(host);
  writeFileSync(join(attempt.directory, 'hold'), '');
  const events = client.run({ id: 'once', token: 'one', command: 'touch ran; exec sleep 300' });
  // Requests are served in order, so the child was requested to start.
  await client.ping();
  return { ...attempt, client, events };
}

const isAlive = (host: LocalExec, pid: number) =>
  processesOf(host).some(line => line.startsWith(`${pid} `));

/** Ends the connection of this host's one serve, and waits until that has swept and is gone. */
async function endServe(host: LocalExec, client: AgentClient): Promise<void> {
  const [name = ''] = readdirSync(join(host.account.home, '.windlass/serve'));
  const pid = Number(name.split('-')[1]);
  client.close();
  await client.closed;
  await waitFor(() => !isAlive(host, pid), { what: 'the end of the serve' });
}

test.each(SHELLS)(
  'an attempt that is removed while it is prepared leaves nothing, by %s',
  async shell => {
    const host = makeHeldHost(shell, '  open_streams\n  # clean_up_serve', '$base/hold');
    const base = join(host.account.home, '.windlass');
    writeFileSync(join(base, 'hold'), '');
    const client = await harness.connect(host, { shell });
    const runs = join(base, 'runs');
    const name = await waitFor(
      () => readdirSync(runs).find(each => existsSync(join(runs, each, 'waiter'))),
      {
        what: 'the attempt',
      },
    );
    await endServe(host, client);
    // What rm leaves where a file was made in the directory meanwhile.
    mkdirSync(join(runs, name), { recursive: true });
    rmSync(join(base, 'hold'));
    await waitFor(() => processesOf(host).length === 0, { what: 'the end of every process' });
    expect(readdirSync(runs)).toEqual([]);
  },
);

// zsh continues a stopped child.
for (const name of ['dash', 'bash', 'busybox', 'ksh']) {
  const shell = findProgram(name) ?? '';
  const needed = (['busybox', 'ksh'] as const).filter(program => program === name);
  describeUnless(missingPrograms(...needed), `agents that race, run by ${name}`, () => {
    test('a late request is told that another attempt has the run, also after its end', async () => {
      const host = harness.makeHost(shell);
      const late = await harness.connect(host);
      const { child } = await awaitAttempt(host);
      process.kill(child, 'SIGSTOP');
      const id = harness.newName();
      const command = 'echo ran >>ledger; echo output';
      const request = () => ({ id, token: harness.newName(), command });
      const outcome = collect({ client: late, id, events: late.run(request()) });
      const first = await harness.connect(host);
      const ran = await collect({ client: first, id, events: first.run(request()) });
      expect(ran.last).toMatchObject({ type: 'ended', code: 0, stdoutBytes: 7 });
      expect((await outcome).types).toEqual(['taken']);
      process.kill(child, 'SIGCONT');
      await harness.close();
      await waitFor(() => processesOf(host).length === 0, { what: 'the end of every process' });
      expect(readFileSync(join(host.account.home, 'ledger'), 'utf8')).toBe('ran\n');
    });
  });
}

const CLAIM = '  if ! create_exclusive "$dir/claim" "$id"; then\n';
const FENCE = '  if ! create_exclusive "$base/started/$id" "$token $attempt"; then\n';

describe.each(SHELLS)('a run whose supervisor dies before it starts, under %s', shell => {
  test('does not start after it was reported as failed', async () => {
    const host = makeHeldHost(shell, CLAIM);
    const { directory, supervisor, child, events } = await startHeld(host);
    process.kill(supervisor, 'SIGKILL');
    await expect(events.next()).rejects.toMatchObject({ code: 'agent_problem' });
    rmSync(join(directory, 'hold'));
    await waitFor(() => !isAlive(host, child), { what: 'the end of its child' });
    expect(existsSync(join(host.account.home, 'ran'))).toBe(false);
  });

  test('is not reported as failed while its child may start it', async () => {
    const host = makeHeldHost(shell, FENCE);
    const { directory, supervisor, client, events } = await startHeld(host);
    await waitFor(() => existsSync(join(directory, 'claim')), { what: 'its claim' });
    process.kill(supervisor, 'SIGKILL');
    const told = collect({ client, id: 'once', events }).then(
      ({ types }) => types,
      (error: unknown) => error,
    );
    await awaitLook(host);
    rmSync(join(directory, 'hold'));
    await waitFor(() => existsSync(join(host.account.home, 'ran')), { what: 'the command' });
    expect(await client.stop('once')).toEqual({ result: 'killed' });
    expect(await told).toEqual(['running', 'ended']);
  });

  test('is reported as failed if its child died with the claim', async () => {
    const host = makeHeldHost(shell, FENCE);
    const { directory, supervisor, child, events } = await startHeld(host);
    await waitFor(() => existsSync(join(directory, 'claim')), { what: 'its claim' });
    for (const pid of [supervisor, child]) process.kill(pid, 'SIGKILL');
    await expect(events.next()).rejects.toMatchObject({ code: 'agent_problem' });
  });
});

test.each(SHELLS)('a successor supervisor reads on behind half a line, by %s', async shell => {
  const host = makeHeldHost(shell, '  drain_notes # of the dds', '$base/hold');
  const { home } = host.account;
  // As GNU dd, which writes a line and its end apart.
  const dd = `#!/bin/sh
case $* in *of=*) ;; *) exec /bin/dd "$@" ;; esac
/bin/dd "$@" 2>/dev/null
code=$?
printf copied >&2
true >~/half.$$
while test -e ~/.windlass/half; do sleep 0.02; done
printf '\\n0+0 records out\\n' >&2
exit $code
`;
  const programs = harness.makePath({});
  writeFileSync(join(programs, 'dd'), dd, { mode: 0o755 });
  host.account.env = { ...host.account.env, PATH: `${programs}:${host.account.env.PATH}` };
  for (const file of ['hold', 'half']) writeFileSync(join(home, '.windlass', file), '');
  const client = await harness.connect(host, { shell });
  const id = harness.newName();
  const command = 'while ! test -e go; do sleep 0.02; done; echo done; exit 3';
  const events = client.run({ id, token: 'one', command });
  expect(await events.next()).toMatchObject({ value: { type: 'running' } });
  const copies = () => processesOf(host).filter(line => /of=.*\/[oe]\.1/.test(line));
  await waitFor(() => copies().length >= 2, { what: 'what copies its output' });
  const supervisor = () =>
    readFileSync(join(runDirectory(host, id), 'supervisor'), 'utf8').split(' ')[2] ?? '';
  const first = supervisor();
  process.kill(Number(first), 'SIGKILL');
  await waitFor(() => supervisor() !== first, { what: 'a successor' });
  writeFileSync(join(home, 'go'), '');
  const halves = () => readdirSync(home).filter(name => name.startsWith('half.'));
  await waitFor(() => halves().length === 2, { what: 'half a line of both' });
  rmSync(join(home, '.windlass/hold'));
  const reads = () => readProc(supervisor(), 'wchan').includes('pipe_read');
  await waitFor(reads, { what: 'a successor that reads' });
  rmSync(join(home, '.windlass/half'));
  const { stdout, last } = await collect({ client, id, events });
  expect([stdout.toString(), last]).toEqual(['done\n', expect.objectContaining({ code: 3 })]);
});

describe.each(SHELLS)('a child that claimed its attempt, under %s', shell => {
  test('does not start once the run is forgotten, however late it goes on', async () => {
    const host = makeHeldHost(shell, FENCE);
    const { directory, child, client, events } = await startHeld(host);
    const isLost = expect(events.next()).rejects.toMatchObject({
      code: 'remote_connection_failed',
    });
    await waitFor(() => existsSync(join(directory, 'claim')), { what: 'its claim' });
    await endServe(host, client);
    await isLost;
    const next = await harness.connect(host, { shell: host.account.shell });
    const again = next.run({ id: 'once', token: 'two', command: 'echo >>ledger' });
    const { last } = await collect({ client: next, id: 'once', events: again });
    expect(last).toMatchObject({ type: 'ended', code: 0 });
    await next.forget('once');
    await endServe(host, next);
    rmSync(join(directory, 'hold'));
    const hasRun = () => existsSync(join(host.account.home, 'ran'));
    await waitFor(() => !isAlive(host, child) || hasRun(), { what: 'what its child does' });
    expect(hasRun()).toBe(false);
    await endServe(host, await harness.connect(host, { shell: host.account.shell }));
    expect(existsSync(join(host.account.home, '.windlass/started/once'))).toBe(false);
  });
});

test.each(SHELLS)(
  'a successor supervisor that dies at once has a successor, by %s',
  async shell => {
    const host = makeHeldHost(shell, '  if ! { echo "$node $boot $$ $start" >"$dir/heir"');
    const { directory, supervisor, client, events } = await startHeld(host);
    expect(await events.next()).toMatchObject({ value: { type: 'running' } });
    process.kill(supervisor, 'SIGKILL');
    const heir = () => {
      const name = readdirSync(directory).find(file => file.startsWith(`heir.${supervisor}.`));
      if (!name) return undefined;
      return Number.parseInt(readFileSync(join(directory, name), 'utf8'), 10);
    };
    const first = await waitFor(heir, { what: 'a successor' });
    process.kill(first, 'SIGKILL');
    await waitFor(() => !isAlive(host, first), { what: 'its end' });
    rmSync(join(directory, 'hold'));
    const now = () => Number(readFileSync(join(directory, 'supervisor'), 'utf8').split(' ')[2]);
    await waitFor(() => now() !== supervisor, { what: 'another successor' });
    expect(isAlive(host, now())).toBe(true);
    expect(await client.stop('once')).toEqual({ result: 'killed' });
    const { last } = await collect({ client, id: 'once', events });
    expect(last).toMatchObject({ type: 'ended', code: 143 });
  },
);

test.each(SHELLS)(
  'a run whose child could not tell of its start is followed, by %s',
  async shell => {
    const host = harness.makeHost(shell);
    const { name, content } = loadAgentFile();
    const tells = '  notify_emitter "started $handle"\n';
    expect(content.toString().split(tells).length).toBe(2);
    const base = join(host.account.home, '.windlass');
    mkdirSync(base, { mode: 0o700 });
    writeFileSync(join(base, name), content.toString().replace(tells, ''));
    const client = await harness.connect(host, { shell: host.account.shell });
    const command = 'echo begun; while ! test -e go; do sleep 0.02; done; exit 3';
    const events = client.run({ id: 'untold', token: 'one', command });
    expect(await events.next()).toMatchObject({ value: { type: 'running' } });
    expect(await events.next()).toMatchObject({ value: { bytes: Buffer.from('begun\n') } });
    writeFileSync(join(host.account.home, 'go'), '');
    const { last } = await collect({
      client,
      id: 'untold',
      events,
      from: { stdout: 6, stderr: 0 },
    });
    expect(last).toMatchObject({ type: 'ended', code: 3 });
  },
);
