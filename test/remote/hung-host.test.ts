import { expect, test } from 'vitest';
import { listProcesses, readEnvironment, signalProcess } from '../../servers/processes.ts';
import { type FaultHost, withHost } from '../faults/fault-host.ts';
import { expectForgotten } from '../faults/host-state.ts';
import { makeTree } from '../faults/stubborn-processes.ts';
import { describeStack } from '../harness/forms.ts';
import { launchAsync, waitForEnd } from '../harness/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { useStack } from '../harness/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

describeStack(missingPrograms('sshd'), 'a host whose agent hangs', form => {
  const service = useStack(form, { env: { REMOTE_SLOTS: '1' } });

  test('a cancelled command ends as not confirmed, gives its slot back, and is stopped later', () =>
    withHost(service, async host => {
      const tree = makeTree();
      const { id } = await launchAsync(service.client, host.sid, tree.command);
      await tree.awaitStart();
      const serving = findServing(host);
      expect(serving).not.toEqual([]);
      for (const pid of serving) signalProcess(pid, 'SIGSTOP');
      try {
        const cancelled = await service.client.fetch(`/api/jobs/${id}`, { method: 'DELETE' });
        expect(cancelled.status).toBe(202);
        expect(await waitForEnd(service.client, id, 25_000)).toMatchObject({
          state: 'cancelled',
          error: {
            code: 'cancelled',
            detail: expect.stringContaining('the host has not confirmed'),
            hint: expect.stringContaining('Keep the session open'),
          },
        });
        // Over a fresh connection, while the old agent still hangs.
        const next = await launchAsync(service.client, host.sid, 'echo next');
        expect(await waitForEnd(service.client, next.id, 25_000)).toMatchObject({
          state: 'succeeded',
        });
        await waitFor(() => tree.left().length === 0, {
          what: 'the tree to be stopped',
          timeoutMs: 30_000,
        });
      } finally {
        for (const pid of serving) signalProcess(pid, 'SIGKILL');
      }
      await expectForgotten(host);
    }));
});

/** The agents on this host that answer a client, with what belongs to them. */
function findServing({ sshd }: FaultHost): number[] {
  return listProcesses()
    .filter(({ pid, command }) => {
      const isServe = /\.windlass\/agent\S* serve /.test(command);
      return isServe && readEnvironment(pid).HOME === sshd.home;
    })
    .map(({ pid }) => pid);
}
