import { expect, test } from 'vitest';
import { sendLogin } from '../harness/browser/browser-login.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { addUser, PASSWORD } from '../harness/clients/users.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack, useStackDatabase } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const LIMIT = 3;
/** Places of one account, or of one address: see password-verifier.ts. */
const SHARE = 32;

const from = (address: string) => ({ 'X-Forwarded-For': address });

describeStack(undefined, 'floods of passwords', form => {
  const { stack, client: admin } = useStack(form, {
    // The tests say where a request came from, as a proxy does.
    env: { TRUST_PROXY: '1', LIMIT_FAILED_LOGINS: String(LIMIT), LIMIT_REQUESTS: '0' },
    alone: 'counts the look-ups of its processes',
  });
  const database = useStackDatabase(stack);

  /** Sends them all at once, `other` when their queue is full, and tells which were answered while `other` waited. */
  async function sendBeside(flood: (() => Promise<Response>)[], other: () => Promise<Response>) {
    const answered: Response[] = [];
    const all = flood.map(async send => {
      const answer = await send();
      await answer.text();
      answered.push(answer);
    });
    await waitFor(() => refused(answered).length >= SHARE, { what: 'a full queue' });
    const earlier = answered.length;
    const { status } = await other();
    const meanwhile = answered.slice(earlier);
    expect(flood.length - answered.length).toBeGreaterThan(0);
    await Promise.all(all);
    return { status, meanwhile, answered };
  }
  const refused = (answers: Response[]) => answers.filter(({ status }) => status === 429);
  const expectHints = (answers: Response[]) => {
    for (const { headers } of answers)
      expect(Number(headers.get('Retry-After'))).toBeGreaterThan(0);
  };

  test('a user who changes the password all the time is told to wait, and delays nobody', async () => {
    const { login: alice, client } = await addUser(admin);
    const { login: bob } = await addUser(admin);
    expect((await client.fetch('/api/users/-')).status).toBe(200);
    // To the one that it is already, so that the credentials stay good.
    const change = () =>
      client.fetch(`/api/users/${alice.username}`, {
        method: 'PUT',
        headers: from('192.0.2.1'),
        body: JSON.stringify({ password: PASSWORD, current: PASSWORD }),
      });
    const flood = Promise.all(Array.from({ length: 150 }, change));
    const { status } = await sendLogin(stack.url, bob, from('192.0.2.2'));
    expect(status).toBe(200);
    const answers = await flood;
    expect(refused(answers).length).toBeGreaterThan(100);
    expectHints(refused(answers));
    // One at a time: none met another that had been taken, too. One that waited for long has a password of before by then.
    const known = new Set([200, 401, 429]);
    expect(answers.map(({ status }) => status).filter(status => !known.has(status))).toEqual([]);
    expect(answers.some(({ ok }) => ok)).toBe(true);
    await waitFor(async () => (await change()).ok, { what: 'the next second' });
  });

  test('a user may change the password several times, one after the other', async () => {
    const { login, client } = await addUser(admin);
    const body = JSON.stringify({ password: PASSWORD, current: PASSWORD });
    for (let n = 0; n < 6; n++)
      expect(
        (await client.fetch(`/api/users/${login.username}`, { method: 'PUT', body })).status,
      ).toBe(200);
  });

  test('who goes on changing the password though refused is refused unread', async () => {
    const { login: alice, client } = await addUser(admin);
    const other = await addUser(admin);
    const send = (username: string, body: string) =>
      client.fetch(`/api/users/${username}`, {
        method: 'PUT',
        headers: { ...from('192.0.2.11'), 'Content-Type': 'application/json' },
        body,
      });
    const change = () =>
      send(alice.username, JSON.stringify({ password: PASSWORD, current: PASSWORD }));
    await expectProblem(await send(alice.username, '{'), 400, 'invalid_input');
    await waitFor(
      async () => {
        await Promise.all(Array.from({ length: 60 }, change));
        return (await send(alice.username, '{')).status === 429;
      },
      { what: 'a flood to be told from a change' },
    );
    expect((await other.client.fetch('/api/users/-')).status).toBe(200);
    await waitFor(async () => (await change()).ok, { what: 'the flood to be over' });
  });

  test('one address that tries many names has its share of the queue, and another one its turn', async () => {
    const { login: bob } = await addUser(admin);
    const flood = Array.from(
      { length: 150 },
      (_, n) => () =>
        sendLogin(stack.url, { username: `guess${n}`, password: 'wrong' }, from('192.0.2.3')),
    );
    const { status, meanwhile, answered } = await sendBeside(flood, () =>
      sendLogin(stack.url, bob, from('192.0.2.4')),
    );
    expect(status).toBe(200);
    expect(meanwhile.filter(answer => answer.status !== 429).length).toBeLessThan(SHARE / 2);
    expect(refused(answered).length).toBeGreaterThanOrEqual(150 - 2 * SHARE);
    expectHints(refused(answered));
  });

  test('whose address is locked is refused without a look-up', async () => {
    const { login: alice } = await addUser(admin);
    const wrong = () =>
      sendLogin(stack.url, { ...alice, password: `wrong ${Math.random()}` }, from('192.0.2.5'));
    for (let n = 0; n < LIMIT; n++) await expectProblem(await wrong(), 401, 'unauthorized');
    await expectProblem(await wrong(), 429, 'too_many_requests');
    const scans = async () => {
      const [row] = await database<{ n: number }[]>`
        select (coalesce(idx_scan, 0) + seq_scan)::int as n from pg_stat_user_tables where relname = 'failed_logins'`;
      return row?.n ?? 0;
    };
    const before = await scans();
    for (let round = 0; round < 20; round++) {
      const answers = await Promise.all(Array.from({ length: 50 }, wrong));
      expect(refused(answers).length).toBe(50);
      expectHints(answers);
    }
    // The server counts scans when a transaction has been over for a second.
    const { login: bob } = await addUser(admin);
    const marked = await scans();
    await sendLogin(stack.url, bob, from('192.0.2.6'));
    await waitFor(async () => (await scans()) > marked, { what: 'the count', timeoutMs: 30_000 });
    await waitFor(
      async () => {
        const once = await scans();
        await new Promise(resolve => setTimeout(resolve, 1_500));
        return once === (await scans());
      },
      { what: 'the count to stand', timeoutMs: 30_000 },
    );
    expect((await scans()) - before).toBeLessThan(500);
  });

  test('who goes on though refused is refused unread, until the second is over', async () => {
    const { login: alice } = await addUser(admin);
    const wrong = () =>
      sendLogin(stack.url, { ...alice, password: `wrong ${Math.random()}` }, from('192.0.2.7'));
    for (let n = 0; n < LIMIT; n++) await expectProblem(await wrong(), 401, 'unauthorized');
    const send = (address: string, body: string | ReadableStream, path = '/api/login') => {
      const headers = { ...from(address), 'Content-Type': 'application/json' };
      return fetch(`${stack.url}${path}`, { method: 'POST', headers, body, duplex: 'half' });
    };
    const unreadable = async (address: string) => (await send(address, '{')).status;
    expect(await unreadable('192.0.2.7')).toBe(400);
    const flood = async () =>
      expect(refused(await Promise.all(Array.from({ length: 30 }, wrong)))).toHaveLength(30);
    /** What a body that is no JSON is refused with, unread, in the flood; on a slow machine that is soon over. */
    const refusalAt = (path?: string) =>
      waitFor(
        async () => {
          await flood();
          const answer = await send('192.0.2.7', '{', path);
          return answer.status === 429 ? answer : undefined;
        },
        { what: 'a flood to be told from a login' },
      );
    await refusalAt();
    expect(await unreadable('192.0.2.8')).toBe(400);
    for (const path of ['/api/login', '/login', '/API/Login/?a=b']) {
      const refusal = await refusalAt(path);
      expect(Object.fromEntries(refusal.headers)).toMatchObject({
        connection: 'keep-alive',
        'content-security-policy': "frame-ancestors 'none'",
        'x-content-type-options': 'nosniff',
        'retry-after': '2',
      });
      await expectProblem(refusal, 429, 'too_many_requests');
    }
    // One that is read, since its length is unknown, is refused by the route.
    const { body } = new Response(JSON.stringify(alice));
    if (!body) throw new Error('a body of some bytes has a stream');
    await expectProblem(await send('192.0.2.7', body), 429, 'too_many_requests');
    await waitFor(async () => (await unreadable('192.0.2.7')) === 400, { what: 'the next second' });
  });

  test('a flood of Basic is refused likewise, beside passwords that were right', async () => {
    const { login: alice } = await addUser(admin);
    const { login: bob } = await addUser(admin);
    const basic = (
      login: { username: string; password: string },
      address: string,
      path = '/api/jobs',
    ) => {
      const Authorization = `Basic ${btoa(`${login.username}:${login.password}`)}`;
      return fetch(`${stack.url}${path}`, { headers: { ...from(address), Authorization } });
    };
    const wrong = (path?: string) =>
      basic({ ...alice, password: `wrong ${Math.random()}` }, '192.0.2.9', path);
    expect((await basic(alice, '192.0.2.9')).status).toBe(200);
    for (let n = 0; n < LIMIT; n++) await expectProblem(await wrong(), 401, 'unauthorized');
    const isUnread = (answer: Response) => answer.headers.get('Retry-After') === '2';
    const flood = (path?: string) => Promise.all(Array.from({ length: 30 }, () => wrong(path)));
    await waitFor(async () => (await flood()).filter(isUnread).length > 20, {
      what: 'a flood to be told from a login',
    });
    // Operations are at the root, too.
    for (const path of ['/jobs', '/metrics', '/admin/queues']) {
      const answer = await waitFor(async () => (await flood(path)).find(isUnread), { what: path });
      const { detail } = await expectProblem(answer, 429, 'too_many_requests');
      expect([path, detail]).toEqual([
        path,
        expect.stringContaining('passwords a second from this address are refused'),
      ]);
    }
    // Of what needs no credentials nothing is refused.
    for (const path of ['/', '/healthz', '/console/', '/api/docs'])
      expect([path, (await wrong(path)).status]).toEqual([path, 200]);
    expect((await basic(alice, '192.0.2.9')).status).toBe(200);
    expect((await basic(bob, '192.0.2.10')).status).toBe(200);
    // Some are looked at nevertheless, among them a right one that this process has not seen.
    const { login: carol } = await addUser(admin);
    // Ahead of the others, which use up what is looked at in a second.
    const comesIn = async () => {
      const [right] = await Promise.all([basic(carol, '192.0.2.9'), flood()]);
      return right.ok;
    };
    await waitFor(comesIn, { what: 'a right password to be looked at', intervalMs: 300 });
  });
});
