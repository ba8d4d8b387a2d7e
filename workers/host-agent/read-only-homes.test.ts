import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  baseOf,
  processesOf,
  readProc,
  SHELLS,
  useAgentHarness,
} from '../../test/harness/hosts/agent-harness.ts';
import type { LocalExec } from '../../test/harness/hosts/local-exec.ts';
import {
  awaitPrepared,
  mountSmallDisk,
  NEEDS_MOUNT,
  unmountSmallDisk,
} from '../../test/harness/hosts/small-disk.ts';
import { waitFor } from '../../test/harness/wait-for.ts';

const harness = useAgentHarness();

const remount = (host: LocalExec, option: 'ro' | 'rw') =>
  execFileSync('mount', ['-o', `remount,${option}`, host.account.home]);

/** The directory of the attempt that the next command gets, once its child waits for it. */
async function findPrepared(host: LocalExec): Promise<string> {
  await awaitPrepared(host);
  const runs = join(baseOf(host), 'runs');
  const name = readdirSync(runs).find(attempt => !existsSync(join(runs, attempt, 'claim')));
  if (name === undefined) throw new Error('no attempt is prepared');
  return join(runs, name);
}

/** As its child and its waiter have it in their arguments. */
function namesOf(dir: string): string[] {
  const name = basename(dir);
  return [name, name.replace(/-(\d+)$/, ' $1')];
}

const REFUSED = {
  code: 'agent_problem',
  message: expect.stringContaining('Read-only file system'),
};

describe.each(SHELLS)('a home that becomes read-only, under %s', shell => {
  test('refuses a command that was asked for and not yet claimed', async context => {
    const host = harness.makeHost(shell);
    if (!mountSmallDisk(host)) return context.skip(NEEDS_MOUNT);
    try {
      const client = await harness.connect(host);
      await harness.run(client, 'true');
      const dir = await findPrepared(host);
      const child = Number.parseInt(readFileSync(join(dir, 'child'), 'utf8'), 10);
      process.kill(child, 'SIGSTOP');
      const refused = client
        .run({ id: 'refused', token: 'one', command: 'echo ran >>ledger' })
        .next()
        .catch((error: unknown) => error);
      await waitFor(() => existsSync(join(dir, 'cmd')), { what: 'the request' });
      remount(host, 'ro');
      process.kill(child, 'SIGCONT');
      expect(await refused).toMatchObject(REFUSED);
      // What was refused was not started, so it may be asked for again.
      remount(host, 'rw');
      const again = { id: 'refused', token: 'one', command: 'echo ran >>ledger' };
      for await (const event of client.run(again)) if (event.type === 'ended') break;
      expect(readFileSync(join(host.account.home, 'ledger'), 'utf8')).toBe('ran\n');
    } finally {
      await unmountSmallDisk(harness, host);
    }
  });

  test.each([
    ['died as it was prepared', true],
    ['is not ready', false],
  ])('refuses a command at once whose attempt %s', async (_, died) => {
    const host = harness.makeHost(shell);
    if (!mountSmallDisk(host)) return; // the test above says so
    try {
      const client = await harness.connect(host);
      await harness.run(client, 'true');
      const dir = await findPrepared(host);
      if (died) {
        const lines = processesOf(host).filter(line =>
          namesOf(dir).some(name => line.includes(name)),
        );
        const pids = lines.map(line => Number.parseInt(line, 10));
        // Stopped first: each would remove the directory once it sees that another has died.
        for (const signal of ['SIGSTOP', 'SIGKILL'])
          for (const pid of pids) process.kill(pid, signal);
        const areDead = () => pids.every(pid => readProc(`${pid}`, 'cmdline') === '');
        await waitFor(areDead, { what: 'their death' });
      }
      for (const file of died ? ['ready', 'child'] : ['ready']) rmSync(join(dir, file));
      remount(host, 'ro');
      const began = performance.now();
      const refused = client.run({ id: 'refused', token: 'one', command: 'true' });
      await expect(refused.next()).rejects.toMatchObject(REFUSED);
      expect(performance.now() - began).toBeLessThan(20_000);
      remount(host, 'rw');
      expect((await harness.run(client, 'echo again')).stdout.toString()).toBe('again\n');
    } finally {
      await unmountSmallDisk(harness, host);
    }
  });
});
