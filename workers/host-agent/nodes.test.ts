import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, describe, expect, test } from 'vitest';
import { findProgram } from '../../scripts/programs.ts';
import { makeTempDir } from '../../test/harness/files/temp-dir.ts';
import {
  AgentHarness,
  collect,
  follow,
  listRuns,
  processesOf,
  runDirectory,
  SHELLS,
} from '../../test/harness/hosts/agent-harness.ts';
import type { LocalExec } from '../../test/harness/hosts/local-exec.ts';
import { waitFor } from '../../test/harness/wait-for.ts';
import type { AgentClient } from './client.ts';

const harness = new AgentHarness();
const directory = makeTempDir('nodes');
afterAll(async () => {
  await harness.close();
  harness.clean();
  directory.remove();
});

const PATH = '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin';

/** A host whose agent sleeps shorter, so that minutes pass in seconds. Commands use /bin/sleep. */
function makeFastHost(shell: string): LocalExec {
  const bin = mkdtempSync(join(directory.path, 'bin-'));
  const sleep = join(bin, 'sleep');
  writeFileSync(
    sleep,
    '#!/bin/sh\ncase $1 in 2) set -- 0.05 ;; 0.05) set -- 0.001 ;; esac\nexec /bin/sleep "$@"\n',
  );
  chmodSync(sleep, 0o755);
  return harness.makeHost(shell, { PATH: `${bin}:${PATH}` });
}

/** Starts a run and changes its record to another node of the same home. */
async function startElsewhere(host: LocalExec, client: AgentClient, command: string) {
  const id = harness.newName();
  const events = client.run({ id, token: 'one', command });
  await events.next();
  const record = join(runDirectory(host, id), 'supervisor');
  const written = readFileSync(record, 'utf8');
  writeFileSync(record, written.replace(client.hello.node, 'elsewhere'));
  return { id, record, written };
}

/** The supervisors first: the others' ends are then not recorded. */
function killAll(host: LocalExec): void {
  for (;;) {
    const all = processesOf(host);
    if (all.length === 0) return;
    const supervisors = all.filter(line => / supervise /.test(line));
    for (const line of supervisors.length > 0 ? supervisors : all) {
      try {
        process.kill(Number.parseInt(line, 10), 'SIGKILL');
      } catch {
        // It has exited with another one.
      }
    }
  }
}

// It takes longest.
test.concurrent('a run whose node has no heartbeat for a minute is lost; an hour later it can be forgotten', async () => {
  const host = makeFastHost(findProgram('dash') ?? '/bin/sh');
  const client = await harness.connect(host);
  const { id, record } = await startElsewhere(host, client, 'exec /bin/sleep 300');
  killAll(host);
  const next = await harness.connect(host);
  const { types, last } = await follow(next, id);
  expect([types, last]).toEqual([['running', 'lost'], { type: 'lost', cause: 'no_heartbeat' }]);
  await expect(next.forget(id)).rejects.toMatchObject({ code: 'conflict' });
  const longAgo = Date.now() / 1_000 - 7_200;
  utimesSync(record, longAgo, longAgo);
  await next.forget(id);
  expect(await listRuns(next)).toEqual([]);
}, 120_000);

// Each test has a host of its own, and waits for minutes that pass in seconds.
describe.each(SHELLS)('more than one node, under %s', { concurrent: true }, shell => {
  test('a run on another node of the same home is followed to its end', async () => {
    const host = makeFastHost(shell);
    const first = await harness.connect(host);
    const command = 'echo begun; while ! test -e go; do /bin/sleep 0.02; done; echo ended; exit 7';
    const { id } = await startElsewhere(host, first, command);
    const second = await harness.connect(host);
    const events = second.follow({ id, stdout: 0, stderr: 0 });
    expect((await events.next()).value).toEqual({ type: 'running' });
    expect((await events.next()).value).toMatchObject({ bytes: Buffer.from('begun\n') });
    // Its processes are on the other node.
    expect(await second.stop(id)).toEqual({ result: 'wrong_node', node: 'elsewhere' });
    await expect(second.forget(id)).rejects.toMatchObject({ code: 'conflict' });
    writeFileSync(join(host.account.home, 'go'), '');
    const rest = await collect({ client: second, id, events, from: { stdout: 6, stderr: 0 } });
    expect(rest.stdout.toString()).toBe('ended\n');
    expect(rest.last).toMatchObject({ type: 'ended', code: 7, stdoutBytes: 12 });
    await second.forget(id);
  });

  test('a live run has a heartbeat, without its serve too, and no longer than it lives', async () => {
    const host = makeFastHost(shell);
    const client = await harness.connect(host);
    const id = harness.newName();
    await client.run({ id, token: 'one', command: 'exec /bin/sleep 300' }).next();
    const record = join(runDirectory(host, id), 'supervisor');
    const awaitBeat = async () => {
      const before = statSync(record).mtimeMs;
      await waitFor(() => statSync(record).mtimeMs > before, {
        what: 'a heartbeat',
        timeoutMs: 60_000,
      });
    };
    await awaitBeat();
    client.close();
    await client.closed;
    await waitFor(() => !processesOf(host).some(line => / serve /.test(line)), {
      what: 'the end of the serve',
    });
    await awaitBeat();
    await awaitBeat();
    const next = await harness.connect(host);
    expect(await next.stop(id)).toEqual({ result: 'killed' });
    await waitFor(() => !processesOf(host).some(line => / heartbeat /.test(line)), {
      what: 'the end of the heartbeat',
      timeoutMs: 30_000,
    });
  });

  test('a heartbeat outlasts an outage of the home', async () => {
    const host = makeFastHost(shell);
    const client = await harness.connect(host);
    const id = harness.newName();
    await client.run({ id, token: 'one', command: 'exec /bin/sleep 300' }).next();
    const run = runDirectory(host, id);
    const isBeating = () => processesOf(host).some(line => / heartbeat /.test(line));
    await waitFor(isBeating, { what: 'a heartbeat' });
    client.close();
    await client.closed;
    const base = join(host.account.home, '.windlass');
    renameSync(join(base, 'runs'), join(base, 'away'));
    await delay(500); // several of its looks
    renameSync(join(base, 'away'), join(base, 'runs'));
    const before = statSync(join(run, 'supervisor')).mtimeMs;
    await waitFor(() => statSync(join(run, 'supervisor')).mtimeMs > before, {
      what: 'a heartbeat',
    });
    expect(await (await harness.connect(host)).stop(id)).toEqual({ result: 'killed' });
  });

  test('a heartbeat process that was killed is started again', async () => {
    const host = makeFastHost(shell);
    const client = await harness.connect(host);
    await client.run({ id: 'long', token: 'one', command: 'exec /bin/sleep 300' }).next();
    const [serve = ''] = readdirSync(join(host.account.home, '.windlass/serve'));
    const record = join(host.account.home, '.windlass/serve', serve, 'heartbeat');
    // It records its PID once it runs.
    const findHeartbeat = () => /^(\d+) \d+$/m.exec(readFileSync(record, 'utf8'))?.[1];
    const first = await waitFor(findHeartbeat, { what: 'a heartbeat', timeoutMs: 30_000 });
    const isBeating = (pid: string) =>
      processesOf(host).some(line => line.startsWith(`${pid} `) && / heartbeat /.test(line));
    expect(isBeating(first)).toBe(true);
    process.kill(Number(first), 'SIGKILL');
    const another = () => {
      const pid = findHeartbeat();
      return pid === first ? undefined : pid;
    };
    const second = await waitFor(another, { what: 'another heartbeat', timeoutMs: 30_000 });
    expect(isBeating(second)).toBe(true);
    expect(await client.stop('long')).toEqual({ result: 'killed' });
  });

  test('a short run starts no heartbeat', async () => {
    const host = harness.makeHost(shell);
    const client = await harness.connect(host);
    await harness.run(client, 'echo short');
    client.close();
    await client.closed;
    expect(processesOf(host).filter(line => / heartbeat /.test(line))).toEqual([]);
  });

  test('a run whose connection was killed with all its processes is lost, with that cause', async () => {
    const host = harness.makeHost(shell);
    const client = await harness.connect(host);
    const id = harness.newName();
    await client.run({ id, token: 'one', command: 'exec /bin/sleep 300' }).next();
    killAll(host);
    await client.closed;
    const next = await harness.connect(host);
    expect((await follow(next, id)).last).toEqual({ type: 'lost', cause: 'session_killed' });
    await next.forget(id);
  });

  test('a run of an earlier boot is lost, with that cause', async () => {
    const host = harness.makeHost(shell);
    const client = await harness.connect(host);
    const id = harness.newName();
    await client.run({ id, token: 'one', command: 'exec /bin/sleep 300' }).next();
    const record = join(runDirectory(host, id), 'supervisor');
    const written = readFileSync(record, 'utf8');
    writeFileSync(record, written.replace(client.hello.boot, 'another-boot'));
    expect((await follow(client, id)).last).toEqual({ type: 'lost', cause: 'reboot' });
    writeFileSync(record, written);
    expect(await client.stop(id)).toEqual({ result: 'killed' });
  });
});

test.concurrent.each([
  ['could not be started', 'exit 1'],
  ['ended before it recorded itself', 'exit 0'],
])('a heartbeat process that %s is started again', async (_, end) => {
  const host = makeFastHost(findProgram('dash') ?? '/bin/sh');
  const { home, env } = host.account;
  const setsid = `#!/bin/sh
case " $* " in *' heartbeat '*) if mkdir ~/failed 2>/dev/null; then ${end}; fi ;; esac
exec /usr/bin/setsid "$@"
`;
  writeFileSync(join(env.PATH?.split(':')[0] ?? '', 'setsid'), setsid, { mode: 0o755 });
  const client = await harness.connect(host);
  await client.run({ id: 'long', token: 'one', command: 'exec /bin/sleep 300' }).next();
  const serves = join(home, '.windlass/serve');
  const record = join(serves, readdirSync(serves)[0] ?? '', 'heartbeat');
  // It records its PID once it runs.
  const isBeating = () => existsSync(record) && /^\d+ \d+$/m.test(readFileSync(record, 'utf8'));
  await waitFor(isBeating, { what: 'a heartbeat' });
  expect(existsSync(join(home, 'failed'))).toBe(true);
  expect(await client.stop('long')).toEqual({ result: 'killed' });
});
