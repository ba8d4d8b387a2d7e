import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type FaultHost, withHost } from '../faults/fault-host.ts';
import { type Job, launchAsync, readOutput, waitForEnd } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const RATE = 2_000_000;
/** What such a link passes while an answer may be waited for: bytes, as a busy machine is no slow link. */
const PATIENCE = 20 * RATE;
const MIB = 1 << 20;

describeStack(missingPrograms('sshd'), 'a host behind a slow link', form => {
  const service = useStack(form, {
    workers: 2,
    env: { REMOTE_SLOTS: '8', LIMIT_SPOOL_BYTES: String(16 * MIB) },
  });

  test(
    'nine commands that print without end hold up neither a line of another one nor its cancel',
    {
      timeout: 240_000,
    },
    () =>
      withHost(service, async ({ sid, sshd, proxy }: FaultHost) => {
        const { client } = service;
        const command =
          'echo begun; while ! test -e "$HOME/go"; do sleep 0.05; done; echo gone; sleep 300';
        const small = await launchAsync(client, sid, command);
        const hasPrinted = (text: string) => async () =>
          String(await readOutput(client, small.id)) === text;
        await waitFor(hasPrinted('begun\n'), { what: 'the small one to begin', timeoutMs: 20_000 });
        proxy.throttle('down', RATE);
        const bulk: Job[] = [];
        for (let n = 0; n < 9; n++) bulk.push(await launchAsync(client, sid, 'cat /dev/zero'));
        const sizeOf = async ({ id }: Job) => {
          const answer = await client.fetch(`/api/jobs/${id}/output`, { method: 'HEAD' });
          return Number(answer.headers.get('Content-Length'));
        };
        await waitFor(
          async () => (await Promise.all(bulk.map(sizeOf))).every(size => size > 100_000),
          {
            what: 'each to be heard',
            timeoutMs: 90_000,
            intervalMs: 200,
          },
        );
        const connections = proxy.connections.total;
        let before = proxy.bytes.down;
        const heardWithin = () => {
          const passed = proxy.bytes.down - before;
          before = proxy.bytes.down;
          return passed;
        };
        writeFileSync(join(sshd.home, 'go'), '');
        await waitFor(hasPrinted('begun\ngone\n'), { what: 'the line', timeoutMs: 60_000 });
        expect(heardWithin()).toBeLessThan(PATIENCE);
        await client.delete(`/api/jobs/${small.id}`);
        expect(await waitForEnd(client, small.id)).toMatchObject({ state: 'cancelled' });
        expect(heardWithin()).toBeLessThan(PATIENCE);
        expect(proxy.connections).toMatchObject({ total: connections, open: connections });
        proxy.throttle('down', Number.POSITIVE_INFINITY);
        for (const { id } of bulk) await client.delete(`/api/jobs/${id}`);
        for (const { id } of bulk)
          expect(await waitForEnd(client, id)).toMatchObject({ state: 'cancelled' });
      }),
  );
});
