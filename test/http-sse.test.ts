import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Client } from '../demo/client.ts';
import { isFull } from './faults/settings.ts';
import { describeForms } from './harness/forms.ts';
import { addHost, connectClient, launchAsync, openSession, waitForEnd } from './harness/remote.ts';
import { missingPrograms } from './harness/skip.ts';
import { SseClients } from './harness/sse-clients.ts';
import { startTestSshd, type TestSshd } from './harness/sshd.ts';
import type { Stack } from './harness/stack.ts';
import { waitFor } from './harness/wait-for.ts';

const COUNT = isFull ? 5_000 : 500;
/** For each client in the API. Of few, what a request leaves to the garbage collector weighs more. */
const MOST_BYTES = isFull ? 20_000 : 60_000;
const WARM = 200;

describeForms(missingPrograms('sshd'), 'many clients of one event stream', form => {
  let stack: Stack;
  let client: Client;
  let sshd: TestSshd;
  let sid: string;

  beforeAll(async () => {
    [stack, sshd] = await Promise.all([
      form.start({ env: { LIMIT_REQUESTS: '0' } }),
      startTestSshd(),
    ]);
    client = connectClient(stack);
    await addHost(client, sshd);
    sid = await openSession(client, sshd);
  });
  afterAll(async () => {
    await stack?.stop();
    await sshd?.stop();
  });

  /** Resident memory of the API's processes, all together, in bytes. */
  function readMemory(): number {
    const pids = stack.pids().filter(({ name }) => name === 'windlass-api');
    const lines = execFileSync('ps', ['-o', 'rss=', '-p', pids.map(({ pid }) => pid).join()]);
    const sizes = lines.toString().trim().split(/\s+/).map(Number);
    return sizes.reduce((sum, size) => sum + size, 0) * 1_024;
  }

  test(`${COUNT} of them cost little, and none misses or repeats a byte when the API is killed`, {
    timeout: isFull ? 600_000 : 120_000,
  }, async () => {
    const patience = { timeoutMs: isFull ? 300_000 : 60_000, intervalMs: 100 };
    const command = `n=0; while ! test -e "$HOME/stop"; do n=$((n+1)); echo $n; sleep ${isFull ? 3 : 0.5}; done`;
    const { id } = await launchAsync(client, sid, command);
    const path = `/api/jobs/${id}/events`;
    const clients = new SseClients({
      url: stack.url,
      path,
      authorization: client.authorization,
    });
    try {
      const openSome = async (count: number) => {
        clients.open(count);
        await waitFor(() => clients.count(one => !one.live || one.bytes === 0) === 0, {
          what: 'every client to be served',
          ...patience,
        });
      };
      // What the first ones cost is code and caches.
      await openSome(WARM);
      const before = readMemory();
      for (let opened = 0; opened < COUNT; opened += 250) await openSome(250);
      const each = (readMemory() - before) / COUNT;
      expect(each).toBeLessThan(MOST_BYTES);

      stack.kill('windlass-api');
      const lastSeen = clients.clients.map(one => one.bytes);
      await waitFor(
        () =>
          clients.clients.every((one, n) => one.connections > 1 && one.bytes > (lastSeen[n] ?? 0)),
        { what: 'every client to be served again, and to go on', ...patience },
      );
      writeFileSync(join(sshd.home, 'stop'), '');
      expect(await waitForEnd(client, id)).toMatchObject({ state: 'succeeded' });
      await waitFor(() => clients.count(one => one.state !== 'succeeded') === 0, {
        what: 'every client to be told the end',
        ...patience,
      });
      const output = await client.getBytes(`/api/jobs/${id}/output?stream=stdout`);
      const { length } = output.bytes;
      expect(clients.count(one => one.bytes !== length)).toBe(0);
      expect(clients.count(one => one.jumps > 0)).toBe(0);
      console.log(`${COUNT} clients of ${form.name}: ${Math.round(each)} bytes each`);
    } finally {
      clients.close();
    }
  });
});
