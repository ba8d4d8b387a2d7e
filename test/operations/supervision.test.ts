import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Client } from '../../servers/api-client.ts';
import { awaitExit, endWithThisProcess, readEnvironment } from '../../servers/processes.ts';
import {
  type Count,
  expectWhole,
  launchCounts,
  waitForOutput,
} from '../faults/counting-commands.ts';
import {
  type FaultHost,
  pidsNamed,
  type RunningStack,
  startFaultStack,
  withHost,
} from '../faults/fault-host.ts';
import { describeUnless, missingPrograms } from '../harness/skip.ts';
import { waitFor } from '../harness/wait-for.ts';

const PROGRAM = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
/** The promise is 2 s; how soon a process then bears its name is the machine's affair. */
const BACK_MS = 30_000;

describeUnless(missingPrograms('sshd'), 'supervision', () => {
  let service: RunningStack;
  beforeAll(async () => {
    service = await startFaultStack('postgres');
  });
  afterAll(() => service?.stack.stop());

  for (const name of ['windlass-api', 'windlass-worker', 'postgres']) {
    test(`${name} killed is back, and commands run again`, { timeout: 60_000 }, () =>
      withHost(service, async host => {
        const count = pidsNamed(service.stack, name).length;
        const killed = service.stack.kill(name);
        expect(killed).toHaveLength(count);
        await waitFor(
          () => {
            const found = pidsNamed(service.stack, name);
            return found.length === count && !found.some(pid => killed.includes(pid));
          },
          { what: `${count} ${name} again`, timeoutMs: BACK_MS },
        );
        await expectWhole(
          service,
          host,
          await launchCounts(service, host.sid, { commands: 1, seconds: 1 }),
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
      withHost(service, async host => {
        const counts = await startCounts(service, host);
        service.stack.kill('supervisor');
        await waitFor(() => service.stack.pids().length === 0, {
          what: 'every process to end',
          timeoutMs: 15_000,
        });
        await service.stack.up();
        await expectWhole(service, host, counts);
      }),
  );

  test(
    'Ctrl-C: held launches are answered, everything ends with 0; the next start goes on',
    {
      timeout: 120_000,
    },
    () =>
      withHost(service, async host => {
        const environment = readEnvironment(service.stack.pid);
        await service.stack.down();
        const terminal = await startInOwnGroup(environment, service.client);
        const counts = await startCounts(service, host);
        const held = service.client.fetch('/api/remotes/launch', {
          method: 'POST',
          body: JSON.stringify({ sid: host.sid, command: 'sleep 3; echo late' }),
        });
        await waitFor(async () => (await openJobs(service)) > counts.length, {
          what: 'the held launch',
        });
        terminal.interrupt();
        expect((await held).status).toBe(202);
        expect(await terminal.ended).toEqual({ code: 0, signal: null });
        expect(service.stack.pids()).toEqual([]);
        await service.stack.up();
        await expectWhole(service, host, counts);
      }),
  );
});

async function startCounts(service: RunningStack, host: FaultHost): Promise<Count[]> {
  const counts = await launchCounts(service, host.sid, { commands: 3, seconds: 5 });
  await waitForOutput(service, counts);
  return counts;
}

async function openJobs({ client }: RunningStack): Promise<number> {
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
