import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeAll, expect, test } from 'vitest';
import { Client } from '../../servers/api-client.ts';
import { newId } from '../../shared/ids.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { openStackDatabase } from '../harness/databases/database.ts';
import { type Job, launchAsync, openSession, waitForEnd } from '../harness/hosts/remote.ts';
import { startReceiver, type WebhookReceiver } from '../harness/servers/webhook-receiver.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack, useStack, useStackDatabase } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

interface Webhook {
  id: string;
  failing: string | null;
  problem: string | null;
  disabled: string | null;
}
interface Delivery {
  job: string;
  state: string;
  attempts: number;
  next: string | null;
  status: number | null;
  problem: string | null;
}

describeStack(missingPrograms('sshd'), 'webhooks', form => {
  const { stack, client, sshd } = useRemoteStack(form, { env: { WEBHOOK_PRIVATE: 'true' } });
  const database = useStackDatabase(stack);
  const receivers: WebhookReceiver[] = [];
  let sid: string;

  beforeAll(async () => {
    sid = await openSession(client, sshd);
  });
  afterEach(async () => {
    const { items } = await client.get<{ items: Webhook[] }>('/api/webhooks');
    for (const { id } of items) await client.delete(`/api/webhooks/${id}`);
    await Promise.all(receivers.splice(0).map(one => one.stop()));
  });

  async function receive(
    answer?: Parameters<typeof startReceiver>[0],
    given: object = {},
    by = client,
  ) {
    const receiver = await startReceiver(answer);
    receivers.push(receiver);
    const made = await by.post<{ id: string; secret: string }>('/api/webhooks', {
      url: receiver.url,
      ...given,
    });
    receiver.secret = made.secret;
    return Object.assign(receiver, { id: made.id });
  }
  const run = async (command = 'true') => {
    const { id } = await launchAsync(client, sid, command);
    return waitForEnd(client, id);
  };
  const deliveriesOf = async (id: string) =>
    (await client.get<{ items: Delivery[] }>(`/api/webhooks/${id}/deliveries`)).items;
  const arrival = ({ received }: WebhookReceiver, job: string) =>
    waitFor(() => received.find(({ data }) => data.id === job), {
      what: `the end of ${job} to arrive`,
      timeoutMs: 20_000,
    });
  const delivery = (id: string, isWanted: (one: Delivery) => boolean) =>
    waitFor(async () => (await deliveriesOf(id)).find(isWanted), {
      what: 'a delivery to be as wanted',
      timeoutMs: 30_000,
    });

  test('each end arrives, signed, with the record of the job', async () => {
    const receiver = await receive();
    const ended = await run('echo out; exit 3');
    const message = await arrival(receiver, ended.id);
    const record = await client.get<Job & { finished: string }>(`/api/jobs/${ended.id}`);
    expect(message).toEqual({
      id: `msg_${ended.id}_${receiver.id}`,
      type: 'job.succeeded',
      timestamp: record.finished,
      data: record,
    });
    const waiting = await launchAsync(client, sid, 'sleep 600');
    expect((await client.fetch(`/api/jobs/${waiting.id}`, { method: 'DELETE' })).status).toBe(202);
    expect((await arrival(receiver, waiting.id)).type).toBe('job.cancelled');
    const timed = await launchAsync(client, sid, 'sleep 600', { timeout: 1 });
    expect(await arrival(receiver, timed.id)).toMatchObject({
      type: 'job.failed',
      data: { error: { code: 'time_limit' } },
    });
    await delivery(receiver.id, one => one.job === timed.id && one.state === 'delivered');
    const all = await deliveriesOf(receiver.id);
    expect(all.map(({ job }) => job)).toEqual([timed.id, waiting.id, ended.id]);
    for (const one of all)
      expect(one).toMatchObject({ state: 'delivered', attempts: 1, status: 204, next: null });
    expect(receiver.refused).toEqual([]);
  });

  test('kinds and states select', async () => {
    const failures = await receive(undefined, { kinds: ['command'], states: ['failed'] });
    const videos = await receive(undefined, { kinds: ['video'] });
    const all = await receive();
    const fine = await run();
    const timed = await launchAsync(client, sid, 'sleep 600', { timeout: 1 });
    await arrival(failures, timed.id);
    await arrival(all, fine.id);
    await arrival(all, timed.id);
    expect(failures.received.map(({ data }) => data.id)).toEqual([timed.id]);
    expect(videos.received).toEqual([]);
  });

  test('what is not taken is tried again, and its record may be removed meanwhile', async () => {
    let refusals = 2;
    const receiver = await receive((_message, res) => {
      res.writeHead(refusals-- > 0 ? 500 : 200).end();
    });
    const { id } = await run('echo kept');
    const record = await client.get(`/api/jobs/${id}`);
    const tried = await delivery(receiver.id, one => one.attempts === 1);
    expect(tried).toMatchObject({ state: 'pending', status: 500, problem: expect.any(String) });
    expect(Date.parse(tried.next ?? '') - Date.now()).toBeGreaterThan(2_000);
    const failing = await client.get<Webhook>(`/api/webhooks/${receiver.id}`);
    expect(failing).toMatchObject({ failing: expect.any(String), disabled: null });
    await client.delete(`/api/jobs/${id}/record`);
    // Later attempts would be minutes apart.
    const soon = () =>
      database`update webhook_deliveries set due = now() where webhook = ${receiver.id}`;
    await soon();
    await delivery(receiver.id, one => one.attempts === 2);
    await soon();
    const taken = await delivery(receiver.id, one => one.state === 'delivered');
    expect(taken).toMatchObject({ attempts: 3, status: 200, problem: null });
    expect(receiver.received.map(({ data }) => data)).toEqual([record, record, record]);
    expect(new Set(receiver.received.map(message => message.id)).size).toBe(1);
    const well = await client.get<Webhook>(`/api/webhooks/${receiver.id}`);
    expect(well).toMatchObject({ failing: null, problem: null });
  });

  test('a receiver that is silent, and one that is slow, hold up no other', async () => {
    const silent = await receive(() => {});
    const slow = await receive((_message, res) => {
      setTimeout(() => res.writeHead(200).end(), 3_000);
    });
    await Promise.all([run(), run(), run(), run(), run()]);
    await waitFor(() => silent.received.length > 0, { what: 'an attempt that nobody answers' });
    const quick = await receive();
    const ended = [await run(), await run(), await run()];
    for (const { id } of ended) await arrival(quick, id);
    // None of the first attempts has given up yet, or a quick one has waited for it.
    expect((await deliveriesOf(silent.id)).filter(({ attempts }) => attempts > 0)).toEqual([]);
    expect(slow.refused).toEqual([]);
  });

  test('no redirect is followed', async () => {
    let elsewhere = 0;
    const target = createServer((_req, res) => {
      elsewhere++;
      res.end();
    }).listen(0, '127.0.0.1');
    await once(target, 'listening');
    const location = `http://127.0.0.1:${(target.address() as AddressInfo).port}/`;
    const receiver = await receive((_message, res) => res.writeHead(308, { location }).end());
    await run();
    const tried = await delivery(receiver.id, one => one.attempts === 1);
    expect(tried).toMatchObject({ status: 308, problem: expect.stringContaining('Redirects') });
    expect(elsewhere).toBe(0);
    target.close();
  });

  test('who takes nothing for three days is disabled, and told so; so is who is gone', async () => {
    const receiver = await receive((_message, res) => res.writeHead(503).end());
    const gone = await receive((_message, res) => res.writeHead(410).end());
    await run();
    await delivery(receiver.id, one => one.attempts === 1);
    await waitFor(
      async () => (await client.get<Webhook>(`/api/webhooks/${gone.id}`)).disabled ?? undefined,
      { what: 'the one that is gone to be disabled' },
    );
    await database`update webhooks set failing_since = now() - interval '73 hours' where id = ${receiver.id}`;
    await database`update webhook_deliveries set due = now(), first_tried = now() - interval '73 hours' where webhook = ${receiver.id}`;
    const last = await delivery(receiver.id, one => one.state === 'failed');
    expect(last).toMatchObject({ attempts: 2, status: 503, next: null });
    const disabled = await client.get<Webhook>(`/api/webhooks/${receiver.id}`);
    expect(disabled).toMatchObject({
      disabled: expect.any(String),
      problem: 'The receiver answered 503.',
    });
    expect(stack.log()).toContain('a webhook was disabled');
    await run();
    expect(await deliveriesOf(receiver.id)).toHaveLength(1);
  });

  test('one whose key was lost says so, and is disabled as one whose receiver takes nothing', async () => {
    const receiver = await receive();
    await database`update webhooks set sealed = 'of another key' where id = ${receiver.id}`;
    await run();
    const { problem } = await delivery(receiver.id, one => one.attempts > 0);
    expect(problem).toContain('add it anew');
    expect(receiver.received).toEqual([]);
    expect(await client.get(`/api/webhooks/${receiver.id}`)).toMatchObject({
      failing: expect.any(String),
      problem,
    });
  });

  test('ends with its user, and is of no other user', async () => {
    const username = 'hooked';
    await client.post('/api/users', { username, password: 'a long password' });
    const user = new Client(stack.url, username, 'a long password');
    const mine = await receive();
    const theirs = await receive(undefined, {}, user);
    for (const path of [`/api/webhooks/${mine.id}`, `/api/webhooks/${mine.id}/deliveries`])
      await expectProblem(await user.fetch(path), 404, 'not_found');
    const method = 'DELETE';
    await expectProblem(await user.fetch(`/api/webhooks/${mine.id}`, { method }), 404, 'not_found');
    const change = (body: object) =>
      client.fetch(`/api/users/${username}`, { method: 'PUT', body: JSON.stringify(body) });
    const left = () =>
      database`select count(*)::int as n from webhooks where owner = ${username}`.then(
        ([row]) => row?.n,
      );
    expect(await left()).toBe(1);
    await change({ disabled: true });
    expect(await left()).toBe(0);
    // A job of theirs that ends meanwhile.
    const job = newId();
    await database`insert into jobs (id, kind, queue, owner, payload)
      values (${job}, 'command', 'remote', ${username}, '{}')`;
    await database`update jobs set state = 'cancelled', finished = now() where id = ${job}`;
    await change({ disabled: false });
    await receive(undefined, {}, user);
    await change({ password: 'another long password' });
    expect(await left()).toBe(0);
    await arrival(mine, (await run()).id);
    expect(theirs.received).toEqual([]);
    const again = new Client(stack.url, username, 'another long password');
    await receive(undefined, {}, again);
    await client.delete(`/api/users/${username}`);
    expect(await left()).toBe(0);
    expect((await run()).state).toBe('succeeded');
    await waitFor(() => mine.received.length > 0, { what: "the administrator's own" });
  });

  test('one that is deleted amid many deliveries gets only those that were under way', async () => {
    const held: ServerResponse[] = [];
    const receiver = await receive((_message, res) => void held.push(res));
    await database`
      with ended as (
        insert into jobs (id, kind, queue, owner, state, payload, finished)
        select ${newId()} || n, 'command', 'remote', ${stack.username}, 'succeeded', '{}', now()
        from generate_series(1, 40) n returning id)
      insert into webhook_deliveries (job, webhook) select id, ${receiver.id} from ended`;
    await waitFor(() => held.length === 4, { what: 'attempts that nobody has answered yet' });
    await client.delete(`/api/webhooks/${receiver.id}`);
    for (const res of held) res.writeHead(204).end();
    const other = await receive();
    await arrival(other, (await run()).id);
    expect(receiver.received).toHaveLength(4);
  });

  test('a user has twenty at most, and wrong ones are refused by name', async () => {
    for (const [given, field] of [
      [{}, 'url'],
      [{ url: 'ftp://receiver.example/' }, 'url'],
      [{ url: 'https://user:secret@receiver.example/' }, 'url'],
      [{ url: 'https://receiver.example/#part' }, 'url'],
      [{ url: 'https://receiver.example/', kinds: ['nothing'] }, 'kinds.0'],
      [{ url: 'https://receiver.example/', states: ['running'] }, 'states.0'],
      [{ url: 'https://receiver.example/', states: [] }, 'states'],
    ] as const) {
      const answer = await client.fetch('/api/webhooks', {
        method: 'POST',
        body: JSON.stringify(given),
      });
      const { fields } = await expectProblem(answer, 400, 'invalid_input');
      expect([given, fields?.[0]?.field]).toEqual([given, field]);
    }
    const url = 'https://receiver.example/';
    for (let n = 0; n < 20; n++) await client.post('/api/webhooks', { url, kinds: ['video'] });
    const body = JSON.stringify({ url });
    await expectProblem(
      await client.fetch('/api/webhooks', { method: 'POST', body }),
      409,
      'conflict',
    );
  });

  test('the key of the signatures is in no row and no answer, and the audit tells of both ends', async () => {
    const receiver = await receive();
    const key = Buffer.from(receiver.secret.slice('whsec_'.length), 'base64');
    expect(key.length).toBe(32);
    const [row] = await database`select sealed from webhooks where id = ${receiver.id}`;
    expect(row?.sealed.includes(key)).toBe(false);
    await client.delete(`/api/webhooks/${receiver.id}`);
    const { items } = await client.get<{ items: { action: string; target: string }[] }>(
      '/api/audit?limit=1000',
    );
    const told = items.filter(({ target }) => target === receiver.id).map(({ action }) => action);
    expect(told).toEqual(['webhook.create', 'webhook.delete']);
    expect(JSON.stringify(await client.get('/api/webhooks'))).not.toMatch(/whsec|sealed/);
  });
});

describeStack(missingPrograms('sshd'), 'webhooks to inner addresses', form => {
  const { stack, client, sshd } = useRemoteStack(form);

  test('are refused when they are made, and when something is sent', async () => {
    for (const host of ['127.0.0.1', 'localhost', '[::1]', '10.0.0.1', '169.254.169.254', '0x7f.1'])
      await expectProblem(
        await client.fetch('/api/webhooks', {
          method: 'POST',
          body: JSON.stringify({ url: `http://${host}/` }),
        }),
        403,
        'host_not_allowed',
      );
    const receiver = await startReceiver();
    const made = await client.post<{ id: string; secret: string }>('/api/webhooks', {
      url: 'https://receiver.example/',
    });
    receiver.secret = made.secret;
    const database = openStackDatabase(stack);
    await database`update webhooks set url = ${receiver.url} where id = ${made.id}`;
    await database.end();
    const { id } = await launchAsync(client, await openSession(client, sshd), 'true');
    const tried = await waitFor(
      async () => {
        const path = `/api/webhooks/${made.id}/deliveries`;
        const { items } = await client.get<{ items: Delivery[] }>(path);
        return items.find(one => one.job === id && one.attempts > 0);
      },
      { what: 'an attempt', timeoutMs: 30_000 },
    );
    expect(tried).toMatchObject({
      state: 'pending',
      status: null,
      problem: expect.stringMatching(/^Not allowed: 127\.0\.0\.1 is a loopback/),
    });
    expect([receiver.received, receiver.refused]).toEqual([[], []]);
    await receiver.stop();
  });
});

describeStack(undefined, 'tokens and webhooks', form => {
  const { client } = useStack(form);

  test('no token makes or deletes one', async () => {
    const given = { name: 'hooks', scope: 'write' };
    const { token } = await client.post<{ token: string }>('/api/users/-/tokens', given);
    const { id } = await client.post<{ id: string }>('/api/webhooks', {
      url: 'https://receiver.example/',
    });
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
    const body = JSON.stringify({ url: 'https://other.example/' });
    for (const [method, path, sent] of [
      ['POST', '/api/webhooks', body],
      ['DELETE', `/api/webhooks/${id}`, undefined],
    ] as const) {
      const answer = await fetch(client.base + path, { method, headers, body: sent });
      await expectProblem(answer, 403, 'forbidden');
    }
    expect((await fetch(`${client.base}/api/webhooks`, { headers })).status).toBe(200);
  });
});
