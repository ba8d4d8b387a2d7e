import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  baseOf,
  processesOf,
  SHELLS,
  useAgentHarness,
} from '../../test/harness/hosts/agent-harness.ts';
import type { LocalExec } from '../../test/harness/hosts/local-exec.ts';
import { waitFor } from '../../test/harness/wait-for.ts';

const harness = useAgentHarness();

/** A connection with the process ids of the attempt that it has prepared. */
async function prepare(shell: string) {
  const host = harness.makeHost(shell);
  const client = await harness.connect(host);
  const runs = join(baseOf(host), 'runs');
  const directory = await waitFor(
    () =>
      readdirSync(runs)
        .map(name => join(runs, name))
        .find(each => existsSync(join(each, 'ready'))),
    { what: 'an attempt' },
  );
  const read = (file: string) => readFileSync(join(directory, file), 'utf8').split(' ').map(Number);
  const [waiter = 0] = read('waiter');
  const [child = 0] = read('child');
  return { host, client, directory, waiter, child, supervisor: read('supervisor')[2] ?? 0 };
}

/** The processes of attempts. */
const attemptsOf = (host: LocalExec) =>
  processesOf(host).filter(line => /agent-\w+\.sh (supervise|child) /.test(line));

const end = (host: LocalExec, processes: (host: LocalExec) => string[]) =>
  waitFor(() => processes(host).length === 0, { what: 'their end', timeoutMs: 10_000 });

describe.each(SHELLS)('the processes of a prepared attempt end, under %s', shell => {
  test('if its directory is removed, with the next ping', async () => {
    const { host, client, directory } = await prepare(shell);
    rmSync(directory, { recursive: true });
    await client.ping();
    await end(host, attemptsOf);
    const { stdout } = await harness.run(client, 'echo on');
    expect(stdout.toString()).toBe('on\n');
  });

  test('if all of the agent is removed, with the connection', async () => {
    const { host, client } = await prepare(shell);
    rmSync(baseOf(host), { recursive: true });
    client.close();
    await client.closed;
    await end(host, processesOf);
  });

  test('if its directory and its serve are gone, with the next connection', async () => {
    const { host, directory } = await prepare(shell);
    const attempts = attemptsOf(host);
    const ours = processesOf(host).filter(line => !attempts.includes(line));
    // All are stopped first: the one that is killed last would clean up.
    for (const signal of ['SIGSTOP', 'SIGKILL'])
      for (const line of ours) process.kill(Number.parseInt(line, 10), signal);
    rmSync(directory, { recursive: true });
    await harness.connect(host);
    await harness.close();
    await end(host, processesOf);
  });

  test('if its waiter is killed', async () => {
    const { host, client, directory, waiter } = await prepare(shell);
    process.kill(waiter, 'SIGKILL');
    await end(host, attemptsOf);
    expect(existsSync(directory)).toBe(false);
    const { stdout } = await harness.run(client, 'echo on');
    expect(stdout.toString()).toBe('on\n');
  });

  test('if its waiter dies as the connection ends', async () => {
    const { host, client, waiter, child } = await prepare(shell);
    process.kill(waiter, 'SIGSTOP');
    process.kill(child, 'SIGKILL');
    client.close();
    await client.closed;
    const isServed = () => processesOf(host).some(line => / serve /.test(line));
    await waitFor(() => !isServed(), { what: 'the end of the serve' });
    process.kill(waiter, 'SIGKILL');
    await end(host, processesOf);
  });

  test('if its waiter and its child are killed, with the connection', async () => {
    const { host, client, waiter, child } = await prepare(shell);
    for (const pid of [waiter, child]) process.kill(pid, 'SIGKILL');
    client.close();
    await client.closed;
    await end(host, processesOf);
  });
});
