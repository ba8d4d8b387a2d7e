import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { beforeAll, expect, test } from 'vitest';
import type { Client } from '../../servers/api-client.ts';
import { newId } from '../../shared/ids.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { addUsers } from '../harness/clients/projects.ts';
import { openStackDatabase } from '../harness/databases/database.ts';
import {
  type Job,
  launchAsync,
  openSession,
  readOutput,
  waitForEnd,
} from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import type { Stack } from '../harness/stacks/stack.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const MAX = 12;

describeStack(missingPrograms('sshd'), 'answers that are open for long', form => {
  const { stack, client, sshd } = useRemoteStack(form, { env: { LIMIT_STREAMS: String(MAX) } });
  let sid: string;

  beforeAll(async () => {
    sid = await openSession(client, sshd);
  });

  test('one user has LIMIT_STREAMS of them: one more is 429, for that user alone', async () => {
    const { id } = await launchAsync(client, sid, 'echo begun; sleep 600');
    await waitFor(async () => (await readOutput(client, id)).length > 0, { what: 'its output' });
    const path = `/api/jobs/${id}/events`;
    const leave = new AbortController();
    for (let n = 0; n < MAX; n++)
      expect((await client.fetch(path, { signal: leave.signal })).status).toBe(200);
    for (const refused of [path, `/api/jobs/${id}/output`]) {
      const answer = await client.fetch(refused);
      expect(answer.headers.get('Retry-After')).toBe('10');
      const problem = await expectProblem(answer, 429, 'too_many_requests');
      expect(`${problem.detail} ${problem.hint}`).toMatch(/ 12 .* LIMIT_STREAMS /);
    }
    const { other } = await addUsers(stack, ['other']);
    const own = await launchAsync(other, await openSession(other, sshd), 'echo own');
    await waitForEnd(other, own.id);
    expect(String(await readOutput(other, own.id))).toBe('own\n');
    leave.abort();
    await waitFor(async () => (await client.fetch(`/api/jobs/${id}/output`)).status === 200, {
      what: 'room for another',
    });
    await client.delete(`/api/jobs/${id}`);
  });

  test.each(['polls that wait', 'launches that are repeated'])(
    'so it is with %s, which are counted together',
    async kind => {
      const key = { 'Idempotency-Key': kind.replaceAll(' ', '-') };
      const body = JSON.stringify({ sid, command: 'sleep 600' });
      const repeat = (init: RequestInit = {}) =>
        client.fetch('/api/remotes/launch', { method: 'POST', headers: key, body, ...init });
      const started = await repeat({ headers: { ...key, Prefer: 'respond-async' } });
      const { id } = (await started.json()) as Job;
      const still = await addStillJob();
      const path = `/api/jobs/${still}`;
      const poll = (init: RequestInit = {}) =>
        client.fetch(path, { headers: { Prefer: 'wait=300' }, ...init });
      const leave = new AbortController();
      const hold = kind === 'polls that wait' ? poll : repeat;
      const all = Array.from({ length: MAX + 1 }, () => hold({ signal: leave.signal }));
      const ended = Promise.allSettled(all);
      // Nothing but a refusal ends one of them, whichever came last; from then on as many are held as may be.
      for (const refused of [await Promise.race(all), await poll(), await repeat()]) {
        expect(refused.headers.get('Retry-After')).toBe('10');
        expect(refused.headers.get('Preference-Applied')).toBeNull();
        const problem = await expectProblem(refused, 429, 'too_many_requests');
        expect(`${problem.detail} ${problem.hint}`).toMatch(/ 12 .* LIMIT_STREAMS /);
      }
      // What waits for nothing is none of them, and neither is what is read.
      for (const free of [path, `${path}/output`])
        expect((await client.fetch(free)).status).toBe(200);
      leave.abort();
      await ended;
      const short = { headers: { Prefer: 'wait=1' } };
      await waitFor(async () => (await poll(short)).status === 200, { what: 'room for another' });
      await client.delete(`/api/jobs/${id}`);
    },
  );

  /** A job that waits for ever: nothing changes it. */
  async function addStillJob(): Promise<string> {
    const id = newId();
    const database = openStackDatabase(stack);
    try {
      await database`insert into jobs (id, kind, queue, owner, payload, state, not_before)
        values (${id}, 'video', 'video', ${stack.username}, '{}', 'running', 'infinity')`;
    } finally {
      await database.end();
    }
    return id;
  }

  test('events last no longer than the link or the token that opened them', async () => {
    const path = `/api/jobs/${await addStillJob()}/events`;
    const link = { path, seconds: 3 };
    const linked = await client.post<{ url: string; expires: string }>('/api/links', link);
    const expires = new Date(Date.now() + 3_000).toISOString();
    const given = { name: 'short', scope: 'read', expires };
    const { token } = await client.post<{ token: string }>('/api/users/-/tokens', given);
    const soon = { signal: AbortSignal.timeout(30_000) };
    const bearer = { ...soon, headers: { Authorization: `Bearer ${token}` } };
    const ways = [
      { expires: linked.expires, open: () => fetch(linked.url, soon) },
      { expires, open: () => fetch(stack.url + path, bearer) },
    ];
    const watch = async ({ expires, open }: (typeof ways)[number]) => {
      const opened = await open();
      expect(opened.status).toBe(200);
      // In order, so that who may come back goes on after the last event.
      expect(await opened.text()).toMatch(/^event: state\n/);
      expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(expires));
      expect((await open()).status).toBe(401);
    };
    await Promise.all(ways.map(watch));
  });

  test('a download that began before its link ended comes whole', async () => {
    const { id } = await launchAsync(client, sid, 'seq 1 5000000');
    await waitForEnd(client, id);
    const link = { path: `/api/jobs/${id}/output`, seconds: 3 };
    const { url, expires } = await client.post<{ url: string; expires: string }>(
      '/api/links',
      link,
    );
    const socket = openPaused(stack, client, url.slice(stack.url.length));
    await waitFor(async () => (await fetch(url, { method: 'HEAD' })).status === 401, {
      what: 'the end of the link',
    });
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(expires));
    expect((await readBody(socket)).length).toBe(38_888_896);
  });

  test('who stops reading an output keeps nobody from it, and gets the rest later', async () => {
    const { id } = await launchAsync(client, sid, 'seq 1 5000000');
    await waitForEnd(client, id);
    const path = `/api/jobs/${id}/output?offset=7`;
    const slow = Array.from({ length: MAX - 2 }, () => openPaused(stack, client, path));
    await Promise.all(slow.map(socket => once(socket, 'connect')));
    const whole = await readOutput(client, id, 'stdout', 7);
    expect(whole.length).toBe(38_888_896 - 7);
    const [first, last] = await Promise.all([slow[0], slow.at(-1)].map(readBody));
    expect(first?.equals(whole)).toBe(true);
    expect(last?.equals(whole)).toBe(true);
    for (const socket of slow) socket.destroy();
  });
});

/** A request whose answer is not read before the socket is resumed. */
function openPaused(stack: Stack, { authorization }: Client, path: string): Socket {
  const { hostname, port, host } = new URL(stack.url);
  const socket = connect(Number(port), hostname).pause();
  socket.on('error', () => {});
  socket.write(
    `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: ${authorization}\r\nConnection: close\r\n\r\n`,
  );
  return socket;
}

async function readBody(socket: Socket | undefined): Promise<Buffer> {
  const received: Buffer[] = [];
  for await (const bytes of socket ?? []) received.push(bytes as Buffer);
  const answer = Buffer.concat(received);
  return answer.subarray(answer.indexOf('\r\n\r\n') + 4);
}
