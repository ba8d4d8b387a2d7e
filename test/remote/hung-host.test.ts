import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { listProcesses, readEnvironment, signalProcess } from '../../servers/processes.ts';
import { type FaultHost, withHost } from '../faults/fault-host.ts';
import { expectForgotten } from '../faults/host-state.ts';
import { makeTree } from '../faults/stubborn-processes.ts';
import { makeHungDisk } from '../harness/hosts/hung-disk.ts';
import { type Job, launchAsync, openSession, waitForEnd } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack, useStack } from '../harness/stacks/use-stack.ts';
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

/** More than the channels of a connection. */
const MANY = 9;

describeStack(missingPrograms('sshd'), 'a host whose disk hangs', form => {
  const disk = makeHungDisk();
  afterAll(() => disk.remove());
  const { client, sshd } = useRemoteStack(form, { workers: 2, sshdLines: [disk.line] });

  test('cancelled listings end, and the next ones have another connection', async () => {
    const sid = await openSession(client, sshd);
    // It goes on over the connection that it was begun on.
    const beside = await launchAsync(client, sid, 'while ! test -e "$HOME/go"; do sleep 0.1; done');
    disk.hang();
    const leave = new AbortController();
    const list = (signal?: AbortSignal) =>
      client.fetch(`/api/remotes/${sid}/browse/tmp`, { method: 'POST', signal });
    const listings = Array.from({ length: MANY }, () => list(leave.signal).catch(() => {}));
    const listJobs = async () =>
      (await client.get<{ items: Job[] }>('/api/jobs?kind=browse')).items;
    await waitFor(
      async () => (await listJobs()).filter(({ state }) => state === 'running').length === MANY,
      { what: 'the listings to begin' },
    );
    // Whoever leaves cancels.
    leave.abort();
    await Promise.all(listings);
    await waitFor(async () => (await listJobs()).every(({ state }) => state === 'cancelled'), {
      what: 'the cancelled listings to end',
      timeoutMs: 5_000,
    });
    disk.heal();
    // One of the two workers makes a second connection.
    const logins = () => sshd.log().split('Accepted publickey').length - 1;
    await waitFor(async () => (await list()).status === 200 && logins() > 2, {
      what: 'a listing over another connection',
      timeoutMs: 30_000,
    });
    writeFileSync(join(sshd.home, 'go'), '');
    expect(await waitForEnd(client, beside.id)).toMatchObject({ state: 'succeeded' });
  });
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
