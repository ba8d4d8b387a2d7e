import { beforeAll, expect, test } from 'vitest';
import { describeStack } from '../harness/forms.ts';
import { type Job, openSession } from '../harness/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { useProxiedStack } from '../harness/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

describeStack(missingPrograms('sshd'), 'a request whose client left before the answer', form => {
  const { client, sshd, proxy } = useProxiedStack(form);
  let sid: string;

  beforeAll(async () => {
    sid = await openSession(client, sshd);
  });

  /** Sends it while the host says nothing, and leaves: its job ends with it. */
  async function leave(kind: string, send: (signal: AbortSignal) => Promise<Response>) {
    const list = async () => (await client.get<{ items: Job[] }>('/api/jobs?limit=100')).items;
    const before = (await list()).map(({ id }) => id);
    const find = async () =>
      (await list()).find(job => job.kind === kind && !before.includes(job.id));
    const left = new AbortController();
    proxy.blackhole();
    const sent = send(left.signal).catch(() => {});
    await waitFor(async () => (await find())?.state === 'running', {
      what: `the ${kind} to begin`,
    });
    left.abort();
    await sent;
    await waitFor(async () => (await find())?.state === 'cancelled', { what: 'its end' });
    proxy.heal();
  }

  test('is done when it is sent again with its Idempotency-Key', async () => {
    const { username, privateKey } = sshd;
    const init = { method: 'POST', headers: { 'Idempotency-Key': 'once' } };
    const body = JSON.stringify({ hostname: 'host', username, privateKey });
    const open = (signal?: AbortSignal) => client.fetch('/api/remotes', { ...init, body, signal });
    await leave('connect', open);
    const opened = await open();
    expect(opened.status).toBe(200);
    expect(await (await open()).json()).toEqual(await opened.json());

    const browse = (signal?: AbortSignal) =>
      client.fetch(`/api/remotes/${sid}/browse${sshd.home}`, { ...init, signal });
    await leave('browse', browse);
    expect((await browse()).status).toBe(200);
  });
});
