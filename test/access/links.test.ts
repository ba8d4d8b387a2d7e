import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, expect, test } from 'vitest';
import { Client } from '../../servers/api-client.ts';
import { newId } from '../../shared/ids.ts';
import { logIn } from '../harness/browser/browser-login.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { makeModel } from '../harness/clients/uploads.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { UNLIMITED, useStack, useStackDatabase } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const PASSWORD = 'correct horse';
const ME = '/api/users/-';

describeStack(undefined, 'links', form => {
  const { stack, client: admin } = useStack(form, UNLIMITED);
  let made = 0;
  let parameter: string;
  let pid: string;

  beforeAll(async () => {
    const model = await makeModel(admin);
    pid = model.pid;
    parameter = `/api/models/${model.mid}/parameters/p`;
    const body = JSON.stringify({ value: 'of all who may read' });
    expect((await admin.fetch(parameter, { method: 'PUT', body })).ok).toBe(true);
  });

  const addUser = async () => {
    const username = `linked${++made}`;
    await admin.post('/api/users', { username, password: PASSWORD });
    return { username, client: new Client(stack.url, username, PASSWORD) };
  };
  const change = (path: string, body: unknown, by = admin) =>
    by.fetch(path, { method: 'PUT', body: JSON.stringify(body) });
  const askForLink = (path: string, by = admin, more: object = {}) =>
    by.fetch('/api/links', { method: 'POST', body: JSON.stringify({ path, ...more }) });
  const linkTo = async (path: string, by = admin, more: object = {}): Promise<string> => {
    const answer = await askForLink(path, by, more);
    expect(answer.status).toBe(201);
    return ((await answer.json()) as { url: string }).url;
  };
  const makeToken = async (scope: string, by = admin, more: object = {}) => {
    const given = { name: 'linking', scope, ...more };
    const token = await by.post<{ id: string; token: string }>('/api/users/-/tokens', given);
    const client = new Client(stack.url, '', '');
    return { ...token, client: Object.assign(client, { authorization: `Bearer ${token.token}` }) };
  };
  const statusOf = async (url: string, init?: RequestInit) => {
    const answer = await fetch(url, init);
    await answer.body?.cancel();
    return answer.status;
  };

  test('GET and HEAD of exactly that path, and nothing else, without other credentials', async () => {
    const url = await linkTo(parameter);
    const link = new URL(url).search;
    expect(url.startsWith(`${stack.url}${parameter}?link=wlk_`)).toBe(true);
    const answer = await fetch(url);
    expect([answer.status, await answer.json()]).toEqual([200, 'of all who may read']);
    expect(answer.headers.get('Referrer-Policy')).toBe('no-referrer');
    expect(await statusOf(url, { method: 'HEAD' })).toBe(200);
    const headers = { Range: 'bytes=0-1' };
    expect([200, 206]).toContain(await statusOf(url, { headers }));
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'])
      expect([method, await statusOf(url, { method })]).toEqual([method, 401]);
    for (const path of [`${parameter}2`, `${parameter}/`, parameter.slice(4), '/api/jobs', ME])
      await expectProblem(await fetch(stack.url + path + link), 401, 'unauthorized');
    const wrong = await fetch(`${url.slice(0, -3)}abc`);
    expect(wrong.headers.get('WWW-Authenticate')).toBe('Bearer');
    await expectProblem(wrong, 401, 'unauthorized');
    expect(await statusOf(`${url}&link=${new URLSearchParams(link).get('link')}`)).toBe(401);
  });

  test('parameters may be added, and none of its own changed; cache is 403', async () => {
    const url = await linkTo('/api/jobs?limit=1&state=failed');
    expect(await statusOf(url)).toBe(200);
    expect(await statusOf(`${url}&kind=command`)).toBe(200);
    expect(await statusOf(url.replace('limit=1', 'limit=2'))).toBe(401);
    expect(await statusOf(`${url}&state=queued`)).toBe(401);
    expect(await statusOf(url.replace('limit=1&', ''))).toBe(401);
    for (const method of ['GET', 'HEAD'])
      expect(await statusOf(`${url}&cache=project`, { method })).toBe(403);
    await expectProblem(await askForLink('/api/jobs?%63ache=project'), 403, 'forbidden');
  });

  test('the link says who asks, whoever the browser is logged in as', async () => {
    const [one, other] = [await addUser(), await addUser()];
    const url = await linkTo(ME, one.client);
    const login = await logIn(stack, { username: other.username, password: PASSWORD });
    for (const answer of [
      await login.fetch(url),
      await other.client.fetch(url.slice(stack.url.length)),
    ])
      expect(await answer.json()).toMatchObject({ username: one.username });
  });

  test('ends when it expires', async () => {
    const before = Date.now();
    const answer = await askForLink(ME, admin, { seconds: 2 });
    const { url, expires } = (await answer.json()) as { url: string; expires: string };
    expect(Date.parse(expires) - before).toBeGreaterThan(0);
    expect(Date.parse(expires) - before).toBeLessThanOrEqual(2_100);
    expect(await statusOf(url)).toBe(200);
    await delay(Date.parse(expires) - Date.now() + 10);
    expect(await statusOf(url)).toBe(401);
  });

  test('ends with a password change, by the user or an administrator', async () => {
    const { username, client } = await addUser();
    const token = await makeToken('write', client);
    const links = [await linkTo(ME, client), await linkTo(ME, token.client)];
    const next = { password: 'another horse', current: PASSWORD };
    expect((await change(`/api/users/${username}`, next, client)).status).toBe(200);
    for (const url of links) expect(await statusOf(url)).toBe(401);
    const again = await linkTo(ME, token.client);
    expect(await statusOf(again)).toBe(200);
    await change(`/api/users/${username}`, { password: PASSWORD });
    expect(await statusOf(again)).toBe(401);
  });

  test('ends with its user: disabled, removed, and not another of that name', async () => {
    const { username, client } = await addUser();
    const url = await linkTo(ME, client);
    await change(`/api/users/${username}`, { disabled: true });
    expect(await statusOf(url)).toBe(401);
    await admin.delete(`/api/users/${username}`);
    expect(await statusOf(url)).toBe(401);
    const [first, second] = await Promise.all(
      [1, 2].map(async () => {
        const { username, client } = await addUser();
        return { username, url: await linkTo(ME, client) };
      }),
    );
    await admin.delete(`/api/users/${first?.username}`);
    await admin.post('/api/users', { username: first?.username, password: PASSWORD });
    expect(await statusOf(first?.url ?? '')).toBe(401);
    expect(await statusOf(second?.url ?? '')).toBe(200);
  });

  test('ends with the token that made it, deleted or expired, and never outlives it', async () => {
    const { client } = await addUser();
    const token = await makeToken('read', client);
    const [url, own] = [await linkTo(ME, token.client), await linkTo(ME, client)];
    await client.delete(`/api/users/-/tokens/${token.id}`);
    expect([await statusOf(url), await statusOf(own)]).toEqual([401, 200]);
    const expires = new Date(Date.now() + 600_000).toISOString();
    const short = await makeToken('read', client, { expires });
    const answer = await askForLink(ME, short.client, { seconds: 86_400 });
    const given = (await answer.json()) as { expires: string };
    expect(Date.parse(given.expires)).toBeLessThanOrEqual(Date.parse(expires));
  });

  test("is judged by the user's rights when it is used", async () => {
    const { username, client } = await addUser();
    const url = await linkTo(parameter, client);
    expect(await statusOf(url)).toBe(404);
    const acl = (readers: string[]) =>
      change(`/api/projects/${pid}`, {
        acl: { administrators: [{ user: 'admin' }], readers: readers.map(user => ({ user })) },
      });
    expect((await acl([username])).status).toBe(200);
    expect(await statusOf(url)).toBe(200);
    await acl([]);
    expect(await statusOf(url)).toBe(404);
    const listed = await linkTo('/api/users', client);
    expect(await statusOf(listed)).toBe(403);
    expect(await statusOf(await linkTo('/api/users'))).toBe(200);
  });

  test('a read token makes links to what it may read', async () => {
    const read = await makeToken('read');
    expect(await statusOf(await linkTo(parameter, read.client))).toBe(200);
    const file = '/api/remotes/none/file/etc/hosts';
    expect(await statusOf(await linkTo(file, read.client))).toBe(403);
    expect(await statusOf(await linkTo(file))).toBe(404);
    const refused = await read.client.fetch('/api/projects', { method: 'POST', body: '{}' });
    expect(refused.status).toBe(403);
  });

  test('a path that no link can be to is refused by name', async () => {
    for (const path of [
      '',
      'api/jobs',
      '//other.example/api/jobs',
      '/\\other.example/api/jobs',
      'http://other.example/api/jobs',
      '/api/jobs#part',
      '/api/jobs?link=x',
      '/api/nothing',
      '/api/launch',
      '/api/tus/01KB4TC9E1F3G5H7J9K1M3N5P7',
      '/healthz',
      '/metrics',
      `/api/jobs?name=${'x'.repeat(9_000)}`,
    ]) {
      const { fields } = await expectProblem(await askForLink(path), 400, 'invalid_input');
      expect([path, fields?.map(({ field }) => field)]).toEqual([path, ['path']]);
    }
    for (const seconds of [0, 86_401, 1.5, '60'])
      await expectProblem(await askForLink('/api/jobs', admin, { seconds }), 400, 'invalid_input');
    expect(await statusOf(await linkTo('/api/jobs', admin, { seconds: 86_400 }))).toBe(200);
  });

  test('a path is taken as browsers send it, with the prefix and without', async () => {
    const { mid } = await makeModel(admin);
    const path = `/models/${mid}/parameters/a b%2Fc`;
    await change(`/api${path}`, { value: 1 });
    for (const prefix of ['', '/api']) {
      const url = await linkTo(`${prefix}/x/..${path}`);
      expect(url).toContain(`${prefix}/models/${mid}/parameters/a%20b%2Fc?link=`);
      expect(await statusOf(url)).toBe(200);
    }
  });

  test('the audit names the path, and not the link', async () => {
    const { username, client } = await addUser();
    const url = await linkTo(`${parameter}?a=b`, client);
    expect(url).toContain(`${parameter}?a=b&link=`);
    const { items } = await admin.get<{ items: object[] }>(
      `/api/audit?action=link&user=${username}`,
    );
    expect(items).toEqual([
      expect.objectContaining({ action: 'link', target: parameter, outcome: 'ok' }),
    ]);
  });

  test('of a long path the audit tells the beginning and a digest', async () => {
    const { username, client } = await addUser();
    for (const path of [
      `/api/jobs/${'x'.repeat(8_000)}`,
      `/api/remotes/${'x'.repeat(8_000)}/file/a`,
    ]) {
      await linkTo(path, client);
      const { items } = await admin.get<{ items: { target: string }[] }>(
        `/api/audit?action=link&user=${username}`,
      );
      const target = items.at(-1)?.target ?? '';
      expect(target.length).toBeLessThanOrEqual(200);
      expect(target).toMatch(/^\/api\/(jobs|remotes)\/x+…[0-9a-f]{64}$/);
    }
  });

  test('of a file on a host the audit tells a digest, as of a command', async () => {
    const { username, client } = await addUser();
    await linkTo('/api/remotes/some/file/home/me/unpublished.csv', client);
    const { items } = await admin.get<{ items: object[] }>(
      `/api/audit?action=link&user=${username}`,
    );
    const digest = createHash('sha256').update('home/me/unpublished.csv').digest('hex');
    expect(items).toMatchObject([{ action: 'link', target: `/api/remotes/some/file/${digest}` }]);
  });

  test('links, webhooks and grants of one user have one rate, and what ends a grant has none', async () => {
    const { username, client } = await addUser();
    const { username: other } = await addUser();
    const { id } = await client.post<{ id: string }>('/api/projects', { name: 'p' });
    const administrators = [{ user: username }];
    const share = (readers: { user: string }[]) =>
      change(`/api/projects/${id}`, { acl: { administrators, writers: [], readers } }, client);
    expect((await share([{ user: other }])).status).toBe(200);
    const { client: reader } = await makeToken('read', client);
    const refused: Response[] = [];
    const ask = async () => {
      const answer = await askForLink(ME, reader);
      if (answer.status === 429) refused.push(answer);
      else await answer.body?.cancel();
    };
    // A slow machine makes room for some more meanwhile.
    await waitFor(
      async () => {
        await Promise.all(Array.from({ length: 50 }, ask));
        return refused.length >= 50;
      },
      { what: 'an end of the burst' },
    );
    for (const answer of refused) {
      const seconds = Number(answer.headers.get('Retry-After'));
      expect(seconds).toBeGreaterThan(0);
      expect(seconds).toBeLessThanOrEqual(10);
      const { detail } = await expectProblem(answer, 429, 'too_many_requests');
      expect(detail).toContain('at most 300 links, webhooks and changes');
    }
    expect((await share([])).status).toBe(200);
    const webhook = { url: 'https://example.com/' };
    const more = [
      () => share([{ user: other }]),
      () => client.fetch('/api/webhooks', { method: 'POST', body: JSON.stringify(webhook) }),
    ];
    for (const grant of more) {
      const isRefused = async () => {
        // What has become free meanwhile is used up.
        await Promise.all([share([]), ...Array.from({ length: 10 }, ask)]);
        return (await grant()).status === 429;
      };
      await waitFor(isRefused, { what: 'a refusal of others' });
    }
    // Nobody else is refused.
    expect((await askForLink(ME)).status).toBe(201);
  });
});

describeStack(undefined, 'links of a user with few requests', form => {
  const env = { LIMIT_REQUESTS: '20', LIMIT_STREAMS: '2' };
  const { stack, client } = useStack(form, { env });
  const database = useStackDatabase(stack);
  const linkTo = async (path: string) =>
    (await client.post<{ url: string }>('/api/links', { path })).url;

  test('take none of the requests of their maker, and have as many together', async () => {
    const links = await Promise.all([linkTo(ME), linkTo('/api/jobs')]);
    const own: number[] = [];
    const isRefused = async () => {
      const asked = Array.from({ length: 60 }, (_, n) => fetch(links[n % 2] ?? ''));
      own.push((await client.fetch(ME)).status);
      const answers = await Promise.all(asked);
      return answers.some(({ status }) => status === 429);
    };
    await waitFor(isRefused, { what: 'a refusal' });
    for (let n = 0; n < 5; n++) await isRefused();
    expect(own.filter(status => status !== 200)).toEqual([]);
  });

  test('nor of the streams', async () => {
    const id = newId();
    await database`
      insert into jobs (id, kind, queue, owner, payload, state)
      values (${id}, 'future', 'remote', ${stack.username}, '{}', 'queued')`;
    const path = `/api/jobs/${id}/events`;
    const url = await linkTo(path);
    const leave = new AbortController();
    const { signal } = leave;
    // Of the requests there are few, too.
    const open = (ask: () => Promise<Response>) =>
      waitFor(
        async () => {
          const answer = await ask();
          return answer.headers.get('Retry-After') === '1' ? undefined : answer;
        },
        { what: 'an answer' },
      );
    const byLink = () => open(() => fetch(url, { signal }));
    expect([await byLink(), await byLink()].map(({ status }) => status)).toEqual([200, 200]);
    await expectProblem(await byLink(), 429, 'too_many_requests');
    expect((await open(() => client.fetch(path, { signal }))).status).toBe(200);
    leave.abort();
  });
});

describeStack(undefined, 'links behind a proxy with a path', form => {
  const { client } = useStack(form, { env: { PUBLIC_URL: 'https://site.example/windlass/' } });

  test('name the address that clients see, and take the paths of Location', async () => {
    for (const path of ['/windlass/api/users/-', ME]) {
      const { url } = await client.post<{ url: string }>('/api/links', { path });
      expect(url.startsWith('https://site.example/windlass/api/users/-?link=')).toBe(true);
      const { pathname, search } = new URL(url);
      const behind = await fetch(client.base + pathname.replace('/windlass', '') + search);
      expect(behind.status).toBe(200);
    }
  });

  test('so do the pages of the queues and of the interface', async () => {
    const board = await (await client.fetch('/admin/queues')).text();
    expect(board).toContain('<base href="/windlass/admin/queues/">');
    const docs = await (await client.fetch('/api/docs')).text();
    expect(docs).toContain('<a href="openapi.json">');
  });
});
