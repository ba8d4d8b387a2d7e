import type postgres from 'postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Client } from '../../servers/api-client.ts';
import { logIn } from '../harness/browser/browser-login.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { apiUrls, openStackDatabase } from '../harness/databases/database.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack } from '../harness/stacks/use-stack.ts';

interface Made {
  id: string;
  token: string;
}
interface Listed {
  id: string;
  name: string;
  scope: string;
  created: string;
  expires: string | null;
}

const PASSWORD = 'correct horse';
const TOKENS = '/api/users/-/tokens';

describeStack(undefined, 'API tokens', form => {
  const { stack, client: admin } = useStack(form);
  let database: postgres.Sql;
  let made = 0;

  beforeAll(async () => {
    database = openStackDatabase(stack);
  });
  afterAll(() => database?.end());

  const addUser = async () => {
    const username = `user${++made}`;
    await admin.post('/api/users', { username, password: PASSWORD });
    return new Client(stack.url, username, PASSWORD);
  };
  const make = (client: Client, given: object = {}) =>
    client.post<Made>(TOKENS, { name: 'a program', scope: 'write', ...given });
  const list = (client: Client, query = '') =>
    client.get<{ items: Listed[]; next: string | null }>(TOKENS + query);
  const ask = (
    token: string,
    path = '/api/users/-',
    {
      method = 'GET',
      body,
      url = stack.url,
    }: { method?: string; body?: unknown; url?: string } = {},
  ) =>
    fetch(url + path, {
      method,
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });

  test('a token is shown once, stored as a hash, and good for every process', async () => {
    const alice = await addUser();
    const response = await alice.fetch(TOKENS, {
      method: 'POST',
      body: JSON.stringify({
        name: 'nightly',
        scope: 'write',
        expires: '2999-01-01T02:00:00+02:00',
      }),
    });
    const { id, token } = (await response.json()) as Made;
    expect([response.status, response.headers.get('Cache-Control')]).toEqual([201, 'no-store']);
    expect(token).toMatch(/^wdl_[\w-]{43}$/);
    const { items, next } = await list(alice);
    expect([items, next]).toEqual([
      [
        {
          id,
          name: 'nightly',
          scope: 'write',
          created: expect.any(String),
          expires: '2999-01-01T00:00:00.000Z',
          used: null,
        },
      ],
      null,
    ]);
    const rows = await database`select * from tokens`;
    expect(JSON.stringify(rows)).not.toContain(token.slice(4));
    for (const url of apiUrls(stack)) {
      const me = await ask(token, '/api/users/-', { url });
      expect([me.status, await me.json()]).toMatchObject([200, { username: `user${made}` }]);
    }
    const lower = await fetch(`${stack.url}/users/-`, {
      headers: { Authorization: `bearer ${token}` },
    });
    expect(lower.status).toBe(200);
  });

  test('a read token reads, and writes nothing', async () => {
    const alice = await addUser();
    const { token } = await make(alice, { scope: 'read' });
    for (const path of ['/api/users/-', '/api/jobs', TOKENS])
      for (const method of ['GET', 'HEAD'])
        expect([path, method, (await ask(token, path, { method })).status]).toEqual([
          path,
          method,
          200,
        ]);
    const writes: [string, string, unknown?][] = [
      ['POST', '/api/remotes', {}],
      ['PUT', '/api/users/user1', {}],
      ['DELETE', '/api/jobs/none'],
      ['DELETE', '/api/logout'],
      ['POST', TOKENS, { name: 'x', scope: 'read' }],
      ['PATCH', '/api/jobs'],
      ['GET', '/api/remotes/none/videos/none?cache=project'],
      ['GET', '/api/remotes/none/videos/none?%63ache=project'],
    ];
    for (const [method, path, body] of writes)
      await expectProblem(await ask(token, path, { method, body }), 403, 'forbidden');
  });

  test('a write token does what its user may, but makes no credentials', async () => {
    const root = await make(admin);
    const alice = await addUser();
    const { token } = await make(alice);
    expect((await ask(token, '/api/remotes', { method: 'POST', body: {} })).status).toBe(400);
    await expectProblem(await ask(token, '/api/users'), 403, 'forbidden');
    expect((await ask(root.token, '/api/users')).status).toBe(200);

    const another = { name: 'another', scope: 'read' };
    const newUser = { username: 'planted', password: PASSWORD };
    const writes: [string, string, string, unknown][] = [
      [token, 'POST', TOKENS, another],
      [root.token, 'POST', TOKENS, another],
      [token, 'PUT', `/api/users/user${made}`, { password: 'another password' }],
      [root.token, 'PUT', `/api/users/user${made}`, { password: 'another password' }],
      [root.token, 'PUT', `/api/users/user${made}`, { administrator: true }],
      [root.token, 'POST', '/api/users', newUser],
    ];
    for (const [key, method, path, body] of writes)
      await expectProblem(await ask(key, path, { method, body }), 403, 'forbidden');
    expect((await alice.fetch('/api/users/-')).status).toBe(200);
    expect((await admin.fetch('/api/users/planted')).status).toBe(404);
    await admin.delete(`${TOKENS}/${root.id}`);
  });

  test('a deleted token is refused at once by every process; nobody deletes those of another', async () => {
    const [alice, bob] = [await addUser(), await addUser()];
    const [first, second] = [await make(alice), await make(alice)];
    const remove = (client: Client, id: string) =>
      client.fetch(`${TOKENS}/${id}`, { method: 'DELETE' });
    for (const client of [bob, admin])
      await expectProblem(await remove(client, first.id), 404, 'not_found');
    await expectProblem(await remove(alice, 'none'), 404, 'not_found');
    expect((await remove(alice, first.id)).status).toBe(204);
    for (const url of apiUrls(stack)) {
      const gone = await ask(first.token, '/api/users/-', { url });
      await expectProblem(gone, 401, 'unauthorized');
      expect((await ask(second.token, '/api/users/-', { url })).status).toBe(200);
    }
    await expectProblem(await remove(alice, first.id), 404, 'not_found');
    expect((await list(alice)).items.map(({ id }) => id)).toEqual([second.id]);
    expect((await list(bob)).items).toEqual([]);
  });

  test('an expired token is refused and listed no more', async () => {
    const alice = await addUser();
    const { id, token } = await make(alice, { expires: '2999-01-01T00:00:00Z' });
    await database`update tokens set expires = now() where id = ${id}`;
    await expectProblem(await ask(token), 401, 'unauthorized');
    expect(await list(alice)).toEqual({ items: [], next: null });
    const remove = await alice.fetch(`${TOKENS}/${id}`, { method: 'DELETE' });
    await expectProblem(remove, 404, 'not_found');
  });

  test('a token lives on with a new password, and ends with its user, for later users too', async () => {
    const alice = await addUser();
    const username = `user${made}`;
    const { token } = await make(alice);
    const password = 'another password';
    await alice.fetch(`/api/users/${username}`, {
      method: 'PUT',
      body: JSON.stringify({ password, current: PASSWORD }),
    });
    expect((await ask(token)).status).toBe(200);
    await admin.delete(`/api/users/${username}`);
    await expectProblem(await ask(token), 401, 'unauthorized');
    await admin.post('/api/users', { username, password });
    await expectProblem(await ask(token), 401, 'unauthorized');
  });

  test('a login by cookie makes tokens from a page of ours', async () => {
    const alice = await addUser();
    expect((await alice.fetch('/api/users/-')).status).toBe(200);
    const login = await logIn(stack, { username: `user${made}`, password: PASSWORD });
    const body = JSON.stringify({ name: 'from a page', scope: 'read' });
    const response = await login.fetch(TOKENS, { method: 'POST', body });
    expect(response.status).toBe(201);
    const { token } = (await response.json()) as Made;
    expect((await ask(token)).status).toBe(200);
    const foreign = { method: 'POST', body, headers: { Origin: 'http://other.example' } };
    await expectProblem(await login.fetch(TOKENS, foreign), 403, 'forbidden');
  });

  test('a token may end with the last second that can be written', async () => {
    const alice = await addUser();
    const { token } = await make(alice, { expires: '9999-12-31T23:59:59-01:00' });
    expect(token).toBeTruthy();
    expect((await alice.fetch('/api/users/-/tokens')).status).toBe(200);
  });

  test('what is no token is refused by field', async () => {
    const alice = await addUser();
    const given = { name: 'x', scope: 'read' };
    const bad: [string, object][] = [
      ['name', { ...given, name: undefined }],
      ['name', { ...given, name: '' }],
      ['name', { ...given, name: 'x'.repeat(101) }],
      ['name', { ...given, name: 'a\u0000b' }],
      ['name', { ...given, name: 'a\ud800b' }],
      ['scope', { ...given, scope: 'admin' }],
      ['expires', { ...given, expires: '2020-01-01T00:00:00Z' }],
      ['expires', { ...given, expires: '2999-01-01' }],
      ['expires', { ...given, expires: '2999-01-01T00:00:00' }],
      ['expires', { ...given, expires: '2999-02-30T00:00:00Z' }],
      ['expires', { ...given, expires: 4_000_000_000 }],
      ['more', { ...given, more: 1 }],
    ];
    for (const [field, body] of bad) {
      const response = await alice.fetch(TOKENS, { method: 'POST', body: JSON.stringify(body) });
      const { fields } = await expectProblem(response, 400, 'invalid_input');
      expect(fields?.map(found => found.field)).toEqual([field]);
    }
    expect((await list(alice)).items).toEqual([]);
    for (const token of ['x', 'wdl_', `wdl_${'x'.repeat(43)}`, `wdl_${'x'.repeat(5_000)}`])
      await expectProblem(await ask(token), 401, 'unauthorized');
  });

  test('a hundred tokens each, listed in pages; two at once do not pass the limit', async () => {
    const alice = await addUser();
    await database`
      insert into tokens (id, hash, username, name, scope)
      select 'id' || lpad(n::text, 3, '0'), ${`user${made}`} || n, ${`user${made}`}, 'x', 'read' from generate_series(1, 99) n`;
    const more = () =>
      alice.fetch(TOKENS, { method: 'POST', body: JSON.stringify({ name: 'x', scope: 'read' }) });
    const statuses = (await Promise.all([more(), more(), more()])).map(({ status }) => status);
    expect(statuses.sort()).toEqual([201, 409, 409]);
    const first = await list(alice, '?limit=60');
    const second = await list(alice, `?limit=60&after=${first.next}`);
    expect([first.items.length, second.items.length, second.next]).toEqual([60, 40, null]);
  });

  test('more new tokens of one user than a hundred at once: 429', async () => {
    const alice = await addUser();
    const replace = async () => {
      const answer = await alice.fetch(TOKENS, {
        method: 'POST',
        body: JSON.stringify({ name: 'x', scope: 'read' }),
      });
      if (answer.status !== 201) return answer;
      await alice.delete(`${TOKENS}/${((await answer.json()) as Made).id}`);
      return undefined;
    };
    const refused: Response[] = [];
    for (let n = 0; n < 13; n++)
      for (const answer of await Promise.all(Array.from({ length: 10 }, replace)))
        if (answer) refused.push(answer);
    expect(refused.length).toBeGreaterThan(0);
    for (const answer of refused) {
      const { detail } = await expectProblem(answer, 429, 'too_many_requests');
      expect(detail).toContain('at most 100 new tokens in one burst, and then one in 3 seconds');
      expect(Number(answer.headers.get('Retry-After'))).toBeGreaterThan(0);
    }
  });
});
