import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Client } from '../../servers/api-client.ts';
import { awaitExit, endWithThisProcess, readEnvironment } from '../../servers/processes.ts';
import { type Count, expectWhole, launchCounts, waitForOutput } from '../faults/counting.ts';
import { type FaultHost, pidsNamed, type Rig, startRig, withHost } from '../faults/rig.ts';
import { describeUnless, missingPrograms } from '../harness/skip.ts';
import { waitFor } from '../harness/wait-for.ts';

const PROGRAM = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
/** The promise is 2 s; how soon a process then bears its name is the machine's affair. */
const BACK_MS = 30_000;

describeUnless(missingPrograms('sshd'), 'supervision', () => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startRig('postgres');
  });
  afterAll(() => rig?.stack.stop());

  for (const name of ['windlass-api', 'windlass-worker', 'postgres']) {
    test(`${name} killed is back, and commands run again`, { timeout: 60_000 }, () =>
      withHost(rig, async host => {
        const count = pidsNamed(rig.stack, name).length;
        const killed = rig.stack.kill(name);
        expect(killed).toHaveLength(count);
        await waitFor(
          () => {
            const found = pidsNamed(rig.stack, name);
            return found.length === count && !found.some(pid => killed.includes(pid));
          },
          { what: `${count} ${name} again`, timeoutMs: BACK_MS },
        );
        await expectWhole(
          rig,
          host,
          await launchCounts(rig, host.sid, { commands: 1, seconds: 1 }),
        );
      }),
    );
  }

  test(
    'the supervisor killed: within 15 s nothing runs; the next start goes on with what ran',
    {
      timeout: 120_000,
    },
    () =>
      withHost(rig, async host => {
        const counts = await startCounts(rig, host);
        rig.stack.kill('supervisor');
        await waitFor(() => rig.stack.pids().length === 0, {
          what: 'every process to end',
          timeoutMs: 15_000,
        });
        await rig.stack.up();
        await expectWhole(rig, host, counts);
      }),
  );

  test(
    'Ctrl-C: held launches are answered, everything ends with 0; the next start goes on',
    {
      timeout: 120_000,
    },
    () =>
      withHost(rig, async host => {
        const environment = readEnvironment(rig.stack.pid);
        await rig.stack.down();
        const terminal = await startInOwnGroup(environment, rig.client);
        const counts = await startCounts(rig, host);
        const held = rig.client.fetch('/api/remotes/launch', {
          method: 'POST',
          body: JSON.stringify({ sid: host.sid, command: 'sleep 3; echo late' }),
        });
        await waitFor(async () => (await openJobs(rig)) > counts.length, {
          what: 'the held launch',
        });
        terminal.interrupt();
        expect((await held).status).toBe(202);
        expect(await terminal.ended).toEqual({ code: 0, signal: null });
        expect(rig.stack.pids()).toEqual([]);
        await rig.stack.up();
        await expectWhole(rig, host, counts);
      }),
  );
});

async function startCounts(rig: Rig, host: FaultHost): Promise<Count[]> {
  const counts = await launchCounts(rig, host.sid, { commands: 3, seconds: 5 });
  await waitForOutput(rig, counts);
  return counts;
}

async function openJobs({ client }: Rig): Promise<number> {
  const { items } = await client.get<{ items: { finished: string | null }[] }>('/api/jobs');
  return items.filter(({ finished }) => finished === null).length;
}

/** `windlass up` as a shell starts it in the foreground: a group of its own, which Ctrl-C reaches as a whole. */
async function startInOwnGroup(environment: Record<string, string>, client: Client) {
  const child = spawn(process.execPath, [PROGRAM, 'up'], {
    cwd: '/',
    env: environment,
    stdio: 'ignore',
    detached: true,
  });
  endWithThisProcess(child);
  const ended = awaitExit(child);
  await waitFor(async () => (await client.fetch('/readyz')).ok, {
    what: 'the stack to be ready',
    timeoutMs: 60_000,
  });
  return { ended, interrupt: () => process.kill(-(child.pid ?? 0), 'SIGINT') };
}
