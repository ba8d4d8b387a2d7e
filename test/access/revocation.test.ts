import { type AddressInfo, connect, createServer } from 'node:net';
import type postgres from 'postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Client } from '../../servers/api-client.ts';
import { newId } from '../../shared/ids.ts';
import { logIn } from '../harness/browser/browser-login.ts';
import { apiUrls, openStackDatabase, readSettings } from '../harness/databases/database.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { type SecondApi, startSecondApi } from '../harness/stacks/second-api.ts';
import { UNLIMITED, useStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const PASSWORD = 'correct horse';
const ME = '/api/users/-';

describeStack(undefined, 'what is revoked', form => {
  const { stack, client: admin } = useStack(form, UNLIMITED);
  let database: postgres.Sql;
  let second: SecondApi | undefined;
  let urls: string[];
  let made = 0;

  beforeAll(async () => {
    database = openStackDatabase(stack);
    urls = apiUrls(stack);
    if (urls.length > 1) return;
    second = await startSecondApi(stack);
    urls.push(second.url);
  });
  afterAll(async () => {
    await second?.stop();
    await database?.end();
  });

  const addUser = async (more: object = {}) => {
    const username = `user${++made}`;
    await admin.post('/api/users', { username, password: PASSWORD, ...more });
    return new Client(stack.url, username, PASSWORD);
  };
  const change = (path: string, body: unknown) =>
    admin.fetch(path, { method: 'PUT', body: JSON.stringify(body) });
  const nameOf = (client: Client) => {
    const encoded = client.authorization.replace('Basic ', '');
    return Buffer.from(encoded, 'base64').toString().split(':')[0] ?? '';
  };

  /**
   * Asks every process all the time, so that whichever remembers credentials has just done so, and revokes through the
   * first: `status` is soon answered everywhere, and stays. What remembers them does for half a second; the wait leaves time
   * to a busy machine.
   */
  async function expectRevoked(
    [path, headers]: [string, Record<string, string>],
    revoke: () => Promise<unknown>,
    status: number,
  ): Promise<void> {
    const ask = (url: string) =>
      fetch(url + path, { headers }).then(async answer => {
        await answer.body?.cancel();
        return answer.status;
      });
    expect(await Promise.all(urls.map(ask))).toEqual(urls.map(() => 200));
    const asking = urls.map(url =>
      waitFor(async () => (await ask(url)) === status, {
        what: `${url} to answer ${status}`,
        timeoutMs: 5_000,
        intervalMs: 10,
      }),
    );
    await Promise.all([revoke(), ...asking]);
    expect(await Promise.all(urls.map(ask))).toEqual(urls.map(() => status));
  }

  const newToken = async () => {
    const owner = await addUser();
    const { id, token } = await owner.post<{ id: string; token: string }>('/api/users/-/tokens', {
      name: 'a program',
      scope: 'read',
    });
    return { owner, id, headers: { Authorization: `Bearer ${token}` } };
  };
  const newLogin = async () => {
    const client = await addUser();
    const login = await logIn(stack, { username: nameOf(client), password: PASSWORD });
    return {
      client,
      login,
      headers: { Cookie: `serviceauth=${login.cookies.get('serviceauth')}` },
    };
  };

  test('every process hears of it soon: tokens, passwords, users, logins, roles', async () => {
    const token = await newToken();
    const [changed, removed, demoted] = await Promise.all([
      addUser(),
      addUser(),
      addUser({ administrator: true }),
    ]);
    const { login, headers: cookie } = await newLogin();
    const as = (client: Client) => ({ Authorization: client.authorization });
    const cases: Parameters<typeof expectRevoked>[] = [
      [
        [ME, as(changed)],
        () => change(`/api/users/${nameOf(changed)}`, { password: 'another one' }),
        401,
      ],
      [[ME, as(removed)], () => admin.delete(`/api/users/${nameOf(removed)}`), 401],
      [
        ['/api/users', as(demoted)],
        () => change(`/api/users/${nameOf(demoted)}`, { administrator: false }),
        403,
      ],
      [[ME, cookie], () => login.fetch('/api/logout', { method: 'DELETE' }), 401],
    ];
    for (const one of cases) await expectRevoked(...one);
    // A token is deleted by its owner.
    await expectRevoked(
      [ME, token.headers],
      () => token.owner.delete(`/api/users/-/tokens/${token.id}`),
      401,
    );
  });

  test('so it does of a part in a project', async () => {
    const { id: pid } = await admin.post<{ id: string }>('/api/projects', { name: 'shared' });
    const reader = await addUser();
    await change(`/api/projects/${pid}`, { acl: { readers: [{ user: nameOf(reader) }] } });
    await expectRevoked(
      [`/api/projects/${pid}`, { Authorization: reader.authorization }],
      () => change(`/api/projects/${pid}`, { acl: { readers: [] } }),
      404,
    );
  });

  test('whoever is disabled has no webhook, token or session afterwards', async () => {
    const { owner, headers } = await newToken();
    const name = nameOf(owner);
    await owner.post('/api/webhooks', { url: 'https://receiver.example/' });
    await change(`/api/users/${name}`, { disabled: true });
    await change(`/api/users/${name}`, { disabled: false });
    expect(await owner.get('/api/webhooks')).toEqual({ items: [], next: null });
    expect((await fetch(stack.url + ME, { headers })).status).toBe(401);
    const told = await admin.get<{ items: unknown[] }>(
      `/api/audit?user=${stack.username}&action=webhook.delete`,
    );
    expect(told.items).toHaveLength(1);
  });

  test('also where nobody is told: the rows alone decide', async () => {
    const [deleted, expired] = [await newToken(), await newToken()];
    const changed = await addUser();
    const { client, headers: cookie } = await newLogin();
    const as = { Authorization: changed.authorization };
    await expectRevoked(
      [ME, deleted.headers],
      () => database`delete from tokens where id = ${deleted.id}`,
      401,
    );
    await expectRevoked(
      [ME, expired.headers],
      () => database`update tokens set expires = now() where id = ${expired.id}`,
      401,
    );
    await expectRevoked(
      [ME, as],
      () => database`delete from users where username = ${nameOf(changed)}`,
      401,
    );
    await expectRevoked(
      [ME, cookie],
      () => database`delete from logins where username = ${nameOf(client)}`,
      401,
    );
  });

  test('events end though the process that disabled their user dies at its commit', async () => {
    const proxy = await startDatabaseProxy((await readSettings(stack)).DATABASE_URL ?? '', () =>
      dying.kill(),
    );
    const dying = await startSecondApi(stack, { DATABASE_URL: proxy.url });
    const follower = await addUser();
    const name = nameOf(follower);
    const id = newId();
    await database`
      insert into jobs (id, kind, queue, owner, payload, state)
      values (${id}, 'future', 'remote', ${name}, '{}', 'queued')`;
    const events = await follower.fetch(`/api/jobs/${id}/events`);
    expect(events.status).toBe(200);
    const reader = events.body?.getReader();
    await reader?.read();
    proxy.dieAtCommitAfter('user.disable');
    const disabled = await fetch(`${dying.url}/api/users/${name}`, {
      method: 'PUT',
      headers: { 'Content-Type': 'application/json', Authorization: admin.authorization },
      body: JSON.stringify({ disabled: true }),
    }).catch((error: Error) => error);
    expect(disabled).toBeInstanceOf(Error);
    const isDisabled = async () => {
      const [row] = await database`select disabled from users where username = ${name}`;
      return row?.disabled;
    };
    await waitFor(isDisabled, { what: 'the commit' });
    let hasEnded = false;
    const end = () => {
      hasEnded = true;
    };
    const untilDone = async () => {
      while (reader && !(await reader.read()).done);
    };
    untilDone().then(end, end);
    await waitFor(() => hasEnded, { what: 'the end of the events', timeoutMs: 10_000 });
    await dying.stop();
    await proxy.stop();
  });

  test('a name that nobody has costs a wrong login as much as one that somebody has', async () => {
    const username = nameOf(await addUser());
    // The shortest time of each, which a busy machine leaves alone. Without a hash to compare with, an unknown name took a
    // thirtieth.
    const spent = { known: Number.POSITIVE_INFINITY, unknown: Number.POSITIVE_INFINITY };
    for (let n = 0; n < 12; n++)
      for (const which of ['known', 'unknown'] as const) {
        const began = performance.now();
        const answer = await fetch(`${stack.url}/api/login`, {
          method: 'POST',
          headers: { 'Content-Type': 'application/json' },
          body: JSON.stringify({
            username: which === 'known' ? username : `${username}x`,
            password: `wrong ${n}`,
          }),
        });
        expect([which, answer.status]).toEqual([which, 401]);
        await answer.body?.cancel();
        spent[which] = Math.min(spent[which], performance.now() - began);
      }
    expect(spent.unknown / spent.known).toBeGreaterThan(0.3);
    expect(spent.unknown / spent.known).toBeLessThan(3);
  });
});

/** Passes a process's connections on to the database. */
async function startDatabaseProxy(url: string, kill: () => void) {
  const target = new URL(url);
  let fatal: string | undefined;
  const server = createServer(client => {
    const upstream = connect(Number(target.port || 5432), target.hostname);
    let isFatal = false;
    for (const socket of [client, upstream]) socket.on('error', () => {});
    upstream.pipe(client);
    client.on('data', chunk => {
      isFatal ||= fatal !== undefined && chunk.includes(fatal);
      upstream.write(chunk);
      if (isFatal && chunk.includes('commit')) kill();
    });
    client.on('close', () => upstream.end());
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const through = new URL(url);
  through.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url: through.href,
    /** The process is killed once it has sent the commit of a transaction that wrote this text. */
    dieAtCommitAfter(text: string) {
      fatal = text;
    },
    stop: () => new Promise(resolve => server.close(resolve)),
  };
}
