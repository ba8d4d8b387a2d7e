import { test } from 'vitest';
import { launchEndlessCount } from '../faults/counting-commands.ts';
import { type FaultHost, withHost } from '../faults/fault-host.ts';
import { holderOf, openSession, readOutput } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeForms } from '../harness/stacks/forms.ts';
import { useStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

/** What it may take after a fault until everything works again. */
const WORKS_AGAIN_MS = 20_000;

/** Bytes that may have been printed before a kill and be stored just after it: a line is a few, five come in a second. */
const IN_FLIGHT = 50;

/** A lease of 10 s, a dispatcher that may be a new one, and a fresh connection: together within what is promised. */
describeForms(missingPrograms('sshd'), 'a worker killed while its command counts', form => {
  const service = useStack(form);

  test('output grows again in another', () =>
    withHost(service, async host => {
      const count = await launchEndlessCount(service, host, host.sid);
      await expectGrowthAfterKilling(count.id, [await holderOf(service.client, count.id)]);
      count.stop();
      await count.expectWhole(WORKS_AGAIN_MS);
    }));

  test('output grows again where the dispatcher was killed too', () =>
    withHost(service, async host => {
      const dispatcher = await findDispatcher(host);
      let count = await launchEndlessCount(service, host, host.sid);
      // The connection decides whose the job is, and it must be that one's.
      while ((await holderOf(service.client, count.id)) !== dispatcher) {
        count.stop();
        await count.expectWhole(WORKS_AGAIN_MS);
        count = await launchEndlessCount(service, host, await openAnother(host));
      }
      await expectGrowthAfterKilling(count.id, [
        await holderOf(service.client, count.id),
        dispatcher,
      ]);
      count.stop();
      await count.expectWhole(WORKS_AGAIN_MS);
    }));

  async function openAnother({ sid, sshd }: FaultHost): Promise<string> {
    const { hostname } = await service.client.get<{ hostname: string }>(`/api/remotes/${sid}`);
    return openSession(service.client, sshd, { hostname });
  }

  async function expectGrowthAfterKilling(id: string, pids: number[]): Promise<void> {
    for (const pid of new Set(pids)) process.kill(pid, 'SIGKILL');
    const before = await sizeOf(id);
    await waitFor(async () => (await sizeOf(id)) > before + IN_FLIGHT, {
      what: 'the output to grow again',
      timeoutMs: WORKS_AGAIN_MS,
      intervalMs: 100,
    });
  }

  const sizeOf = async (id: string) => (await readOutput(service.client, id)).length;

  /** The worker that reclaims what dead ones held says so. */
  async function findDispatcher(host: FaultHost): Promise<number> {
    const said = service.stack.log().length;
    const count = await launchEndlessCount(service, host, await openAnother(host));
    process.kill(await holderOf(service.client, count.id), 'SIGKILL');
    const line = await waitFor(
      () =>
        service.stack
          .log()
          .slice(said)
          .split('\n')
          .find(text => text.includes('"msg":"a worker was lost') && text.includes(count.id)),
      { what: 'the death to be noticed', timeoutMs: WORKS_AGAIN_MS },
    );
    count.stop();
    await count.expectWhole(WORKS_AGAIN_MS);
    return (JSON.parse(line.slice(line.indexOf('{'))) as { pid: number }).pid;
  }
});
