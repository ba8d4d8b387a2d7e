import { expect, test } from 'vitest';
import { Client } from '../../servers/api-client.ts';
import { logIn } from '../harness/browser/browser-login.ts';
import { readOperations } from '../harness/clients/description.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { RawConnection } from '../harness/clients/raw-http.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack } from '../harness/stacks/use-stack.ts';

const APP = 'https://app.example';
const OTHERS = ['https://app.example:8443', 'http://app.example', 'https://x.app.example', 'null'];

describeStack(undefined, 'pages of ALLOWED_ORIGINS', form => {
  const { stack, client } = useStack(form, {
    env: { ALLOWED_ORIGINS: `http://localhost:3000, ${APP}` },
  });

  const ask = (path: string, init: RequestInit = {}, origin = APP) => {
    const headers = new Headers(init.headers);
    headers.set('Origin', origin);
    return fetch(stack.url + path, { ...init, headers });
  };
  const makeToken = async () => {
    const given = { name: 'of a page', scope: 'write' };
    const { token } = await client.post<{ token: string }>('/api/users/-/tokens', given);
    return { Authorization: `Bearer ${token}` };
  };
  const preflight = (path: string, method: string, headers: string, origin = APP) =>
    ask(
      path,
      {
        method: 'OPTIONS',
        headers: {
          'Access-Control-Request-Method': method,
          'Access-Control-Request-Headers': headers,
        },
      },
      origin,
    );
  const list = (answer: Response, name: string) => answer.headers.get(name)?.split(', ') ?? [];

  test('the preflight of every operation is 204, and allows its headers', async () => {
    for (const { method, path, headers } of await readOperations(stack)) {
      // No page can send OPTIONS without a preflight of its own; none of ours needs it.
      if (method === 'OPTIONS') continue;
      const answer = await preflight(path, method, headers.join(', ').toLowerCase());
      expect([path, answer.status, await answer.text()]).toEqual([path, 204, '']);
      expect(answer.headers.get('Access-Control-Allow-Origin')).toBe(APP);
      expect(answer.headers.get('Access-Control-Allow-Credentials')).toBeNull();
      expect(list(answer, 'Access-Control-Allow-Methods')).toContain(method);
      const allowed = list(answer, 'Access-Control-Allow-Headers');
      expect(allowed).toEqual(
        expect.arrayContaining(['Authorization', 'Content-Type', ...headers]),
      );
    }
  });

  test('a preflight that is ambiguous is refused as any request', async () => {
    const lines = [
      `Origin: ${APP}`,
      'Access-Control-Request-Method: GET',
      `Host: ${new URL(stack.url).host}`,
    ];
    for (const [version, line] of [
      ['1.1', 'Host: other'],
      ['1.1', 'Transfer-Encoding: gzip, chunked'],
      ['2.0', 'X: y'],
    ]) {
      const connection = new RawConnection(stack.url);
      const head = [`OPTIONS /api/jobs HTTP/${version}`, ...lines, line, '', ''];
      connection.write(head.join('\r\n'));
      expect([line, (await connection.next())?.status]).toEqual([
        line,
        expect.toBeOneOf([400, 501]),
      ]);
      connection.end();
    }
  });

  test('a token reads and writes, and answers and errors may be read', async () => {
    const headers = { ...(await makeToken()), 'Content-Type': 'application/json' };
    const made = await ask('/api/projects', { method: 'POST', headers, body: '{"name": "p"}' });
    const wrong = await ask('/api/projects', { method: 'POST', headers, body: '{}' });
    const missing = await ask('/nowhere', { headers });
    expect([made.status, wrong.status, missing.status]).toEqual([201, 400, 404]);
    for (const answer of [made, wrong, missing]) {
      expect(answer.headers.get('Access-Control-Allow-Origin')).toBe(APP);
      expect(list(answer, 'Vary')).toContain('Origin');
      const exposed = list(answer, 'Access-Control-Expose-Headers');
      expect(exposed).toEqual(expect.arrayContaining(['Location', 'X-Service-Hint', 'ETag']));
    }
  });

  test('neither a password nor a cookie is taken, a login neither', async () => {
    const { authorization } = client;
    for (const method of ['GET', 'DELETE'])
      await expectProblem(
        await ask('/api/users/-', { method, headers: { Authorization: authorization } }),
        403,
        'forbidden',
      );
    const { username, password } = stack;
    const login = await logIn(stack, { username, password });
    const refused = await login.fetch('/api/users/-', { headers: { Origin: APP } });
    expect(refused.headers.get('WWW-Authenticate')).toBe('Bearer');
    // Neither a password nor a login is of use there.
    const { hint } = await expectProblem(refused, 401, 'unauthorized');
    expect(hint).toMatch(/^Send a token .*\/links\.$/);
    const body = JSON.stringify({ username, password });
    const headers = { 'Content-Type': 'application/json' };
    await expectProblem(
      await ask('/api/login', { method: 'POST', headers, body }),
      403,
      'forbidden',
    );
  });

  test('other origins, however alike, are told nothing, and their preflights are refused', async () => {
    const headers = await makeToken();
    for (const origin of OTHERS) {
      const answer = await ask('/api/users/-', { headers }, origin);
      expect(answer.headers.get('Access-Control-Allow-Origin')).toBeNull();
      expect(list(answer, 'Vary')).toContain('Origin');
      const asked = await preflight('/api/users/-', 'GET', 'authorization', origin);
      expect([origin, asked.status]).toEqual([origin, 401]);
      expect(asked.headers.get('Access-Control-Allow-Origin')).toBeNull();
    }
  });

  test('tus is still told by OPTIONS what is supported', async () => {
    const answer = await ask('/api/tus', { method: 'OPTIONS', headers: await makeToken() });
    expect(answer.headers.get('Tus-Version')).toBe('1.0.0');
    expect(list(answer, 'Access-Control-Expose-Headers')).toContain('Tus-Version');
  });
});

describeStack(undefined, 'no ALLOWED_ORIGINS', form => {
  const { stack } = useStack(form);

  test('no answer names an origin', async () => {
    const client = new Client(stack.url, stack.username, stack.password);
    const answer = await client.fetch('/api/users/-', { headers: { Origin: APP } });
    expect([answer.status, answer.headers.get('Access-Control-Allow-Origin')]).toEqual([200, null]);
    expect(answer.headers.get('Vary')).toBeNull();
  });
});
