import { execFileSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { isFull } from '../faults/settings.ts';
import { addUp, SseClients } from '../harness/clients/sse-clients.ts';
import { launchAsync, openSession, waitForEnd } from '../harness/hosts/remote.ts';
import { startTcpProxy } from '../harness/servers/tcp-proxy.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const COUNT = isFull ? 5_000 : 500;
/** What the API may take for each client. Among few, what the heap grows by anyhow weighs more. */
const MAX_BYTES = isFull ? 20_000 : 40_000;
const WARM = 200;
const CUT = isFull ? 1_000 : 100;
const CUTS = isFull ? 20 : 4;

describeStack(missingPrograms('sshd'), 'many clients of one event stream', form => {
  const { stack, client, sshd } = useRemoteStack(form, { env: { LIMIT_REQUESTS: '0' } });
  let sid: string;

  beforeAll(async () => {
    sid = await openSession(client, sshd);
  });

  const patience = { timeoutMs: isFull ? 300_000 : 60_000, intervalMs: 100 };
  const timeout = isFull ? 900_000 : 180_000;

  const follow = (id: string, { url = stack.url, authorization = client.authorization } = {}) =>
    new SseClients({ url, path: `/api/jobs/${id}/events`, authorization });

  /** A command that prints a number this often until it is told to stop. */
  async function startCounting(name: string, seconds: number) {
    const file = join(sshd.home, `stop-${name}`);
    const command = `n=0; while ! test -e ${file}; do n=$((n+1)); echo $n; sleep ${seconds}; done`;
    const { id } = await launchAsync(client, sid, command);
    return { id, stop: () => writeFileSync(file, '') };
  }

  async function openClients(clients: SseClients, count: number): Promise<void> {
    clients.open(count);
    await waitFor(() => clients.count(one => !one.live || one.bytes === 0) === 0, {
      what: 'every client to be served',
      ...patience,
    });
  }

  async function awaitNews(clients: SseClients): Promise<void> {
    const seen = clients.clients.map(one => one.bytes);
    await waitFor(() => clients.clients.every((one, n) => one.bytes > (seen[n] ?? 0)), {
      what: 'every client to be sent something new',
      ...patience,
    });
  }

  async function expectWhole(clients: SseClients, id: string): Promise<void> {
    expect(await waitForEnd(client, id)).toMatchObject({ state: 'succeeded' });
    const { bytes } = await client.getBytes(`/api/jobs/${id}/output?stream=stdout`);
    await waitFor(() => clients.count(one => !one.ended) === 0, {
      what: 'every client to be sent all and told the end',
      ...patience,
    });
    const sum = addUp(bytes.toString('latin1'));
    expect(clients.count(one => one.bytes !== bytes.length)).toBe(0);
    expect(clients.count(one => one.sum !== sum)).toBe(0);
    expect(clients.count(one => one.jumps > 0)).toBe(0);
  }

  /** Resident memory of the API's processes, all together, in bytes. */
  function readMemory(): number {
    const pids = stack.pids().filter(({ name }) => name === 'windlass-api');
    const lines = execFileSync('ps', ['-o', 'rss=', '-p', pids.map(({ pid }) => pid).join()]);
    const sizes = lines.toString().trim().split(/\s+/).map(Number);
    return sizes.reduce((sum, size) => sum + size, 0) * 1_024;
  }

  /** The median while all are served what is new, several times: between them the heap grows and is swept. */
  async function readSettledMemory(clients: SseClients): Promise<number> {
    const sizes: number[] = [];
    while (sizes.length < 5) {
      await awaitNews(clients);
      sizes.push(readMemory());
    }
    return sizes.sort((a, b) => a - b)[2] ?? 0;
  }

  test(`${COUNT} of them cost little, and none misses or repeats a byte when the API is killed`, {
    timeout,
  }, async () => {
    const job = await startCounting('many', isFull ? 3 : 0.5);
    const clients = follow(job.id);
    try {
      // What the first ones cost is code and caches.
      await openClients(clients, WARM);
      const before = await readSettledMemory(clients);
      for (let opened = 0; opened < COUNT; opened += 250) await openClients(clients, 250);
      const each = ((await readSettledMemory(clients)) - before) / COUNT;
      console.log(`${COUNT} clients of ${form.name}: ${Math.round(each)} bytes each`);
      expect(each).toBeLessThan(MAX_BYTES);

      stack.kill('windlass-api');
      await waitFor(() => clients.count(one => one.connections < 2 || !one.live) === 0, {
        what: 'every client to be served again',
        ...patience,
      });
      await awaitNews(clients);
      job.stop();
      await expectWhole(clients, job.id);
    } finally {
      job.stop();
      clients.close();
    }
  });

  test(`${CUT} of them that the network cuts off again and again get every byte once`, {
    timeout,
  }, async () => {
    const { hostname, port } = new URL(stack.url);
    const proxy = await startTcpProxy({ host: hostname, port: Number(port) });
    const job = await startCounting('cut', 0.02);
    const clients = follow(job.id, { url: `http://127.0.0.1:${proxy.port}` });
    try {
      await openClients(clients, CUT);
      for (let n = 0; n < CUTS; n++) {
        const connections = clients.clients.map(one => one.connections);
        // Wherever that is: within an event, within a head.
        proxy.cutAfter('down', randomInt(1, 200_000));
        await waitFor(
          () => clients.clients.every((one, at) => one.connections > (connections[at] ?? 0)),
          { what: 'every client to be served again', ...patience },
        );
      }
      job.stop();
      await expectWhole(clients, job.id);
    } finally {
      job.stop();
      clients.close();
      await proxy.stop();
    }
  });

  test('more of them than are let read at once get a long output whole', { timeout }, async () => {
    const { id } = await launchAsync(client, sid, 'seq 1 200000');
    expect(await waitForEnd(client, id)).toMatchObject({ state: 'succeeded' });
    const clients = follow(id);
    try {
      clients.open(40);
      await expectWhole(clients, id);
    } finally {
      clients.close();
    }
  });

  test('a deleted token ends its streams; those of other credentials go on', {
    timeout,
  }, async () => {
    const made = await client.post<{ id: string; token: string }>('/api/users/-/tokens', {
      name: 'follow',
      scope: 'read',
    });
    const job = await startCounting('token', 0.1);
    const [byToken, byPassword] = [
      follow(job.id, { authorization: `Bearer ${made.token}` }),
      follow(job.id),
    ];
    try {
      await Promise.all([openClients(byToken, 5), openClients(byPassword, 5)]);
      await client.delete(`/api/users/-/tokens/${made.id}`);
      await waitFor(() => byToken.count(one => one.status !== 401) === 0, {
        what: 'the clients with the token to be refused',
        ...patience,
      });
      await awaitNews(byPassword);
      job.stop();
      await expectWhole(byPassword, job.id);
      expect(byToken.count(one => one.ended)).toBe(0);
    } finally {
      job.stop();
      byToken.close();
      byPassword.close();
    }
  });
});
