import { expect } from 'vitest';
import { type Row, row } from '../row.ts';
import { basic } from '../send.ts';
import { expectAnswer, expectError, type Tools } from '../tools.ts';

const ME = 'GET /users/-';
const UNKNOWN = '00000000000000000000000000';

/** Logs in as a page of this origin does; what it then sends. */
async function logIn({ ask, world }: Tools, more: object = {}) {
  const { username, password } = world.user;
  const answer = await ask('POST', '/login', { as: null, json: { username, password, ...more } });
  const lines = answer.headers['set-cookie'] ?? [];
  const Cookie = lines.map(line => line.split(';')[0]).join('; ');
  return { answer, lines, headers: { Cookie, Origin: new URL(world.url).origin } };
}

/** How a request says whose it is: Basic, cookies and tokens (docs/http/access.md). */
export const AUTHENTICATION: Row[] = [
  row(
    'HTTP Basic: DELETE remote and PUT model parameter',
    'DELETE /remotes/{sid}, PUT /models/{mid}/parameters/{aid}, GET /models/{mid}/parameters/{aid}',
    async ({ ask, make, world }) => {
      const headers = { Authorization: basic(world.user) };
      const path = `/models/${(await make.projectWithModel()).mid}/parameters/${world.name('p')}`;
      expectAnswer(await ask('PUT', path, { as: null, headers, json: { value: 1 } }), 200);
      expectError(await ask('DELETE', `/remotes/${UNKNOWN}`, { as: null, headers }), 404, {
        code: 'session_not_found',
      });
      const wrong = { Authorization: basic({ ...world.user, password: 'wrong wrong' }) };
      const refused = await ask('PUT', path, { as: null, headers: wrong, json: { value: 2 } });
      expectError(refused, 401, { code: 'unauthorized' });
      expectAnswer(await ask('GET', path, { as: null, headers }), 200, { json: 1 });
    },
  ),
  row(
    'cookies serviceauth and servicetimeout: DELETE project and GET bookmark',
    'POST /login, DELETE /projects/{pid}, GET /bookmarks/{bid}',
    async tools => {
      const { ask, make } = tools;
      const pid = await make.newProject();
      const { id } = (
        await make.call('POST', `/projects/${pid}/bookmarks`, { json: { a: 1 } })
      ).json();
      const { headers } = await logIn(tools);
      expect(headers.Cookie).toMatch(/^serviceauth=[^;]+; servicetimeout=[^;]+$/);
      expectAnswer(await ask('GET', `/bookmarks/${id}`, { as: null, headers }), 200);
      expectAnswer(await ask('DELETE', `/projects/${pid}`, { as: null, headers }), 204, {
        reason: 'Project deleted.',
      });
    },
  ),
  row(
    'Everywhere: serviceauth is HttpOnly, SameSite=Lax; servicetimeout readable, the moment it ends',
    'POST /login',
    async tools => {
      const { lines } = await logIn(tools);
      const [auth = '', timeout = ''] = lines;
      expect(auth).toMatch(/^serviceauth=[^;]+;.*HttpOnly/);
      expect(timeout).not.toMatch(/HttpOnly/);
      for (const line of lines) {
        expect(line).toMatch(/SameSite=Lax/);
        expect(/; Secure/.test(line)).toBe(tools.world.url.startsWith('https:'));
      }
      const ends = decodeURIComponent(/^servicetimeout=([^;]+)/.exec(timeout)?.[1] ?? '');
      expect(new Date(ends).toISOString()).toBe(ends);
      expect(Date.parse(ends)).toBeGreaterThan(Date.now());
    },
  ),
  row(
    'Everywhere: POST /login 200 {success: true, target}; target only on this origin',
    'POST /login',
    async tools => {
      for (const [target, answered] of [
        [undefined, '/'],
        ['/a/b?c', '/a/b?c'],
        ['https://elsewhere.example/', '/'],
        ['//elsewhere.example', '/'],
      ]) {
        const { answer } = await logIn(tools, { target });
        expectAnswer(answer, 200, { json: { success: true, target: answered } });
      }
    },
  ),
  row(
    'Everywhere: a wrong login is 401, the same for an unknown name',
    'POST /login',
    async ({ ask, world }) => {
      const told: unknown[] = [];
      for (const username of [world.user.username, world.name('nobody')]) {
        const json = { username, password: 'wrong wrong' };
        const answer = await ask('POST', '/login', { as: null, json });
        const { requestId: _, ...problem } = expectError(answer, 401, { code: 'unauthorized' });
        told.push(problem);
      }
      expect(told[0]).toEqual(told[1]);
    },
  ),
  row(
    'Users: GET /login/oidc and its callback are not there without OIDC_ISSUER',
    'GET /login/oidc, GET /login/oidc/callback',
    async ({ ask }) => {
      for (const path of ['/login/oidc?target=/a', '/login/oidc/callback?code=a&state=b'])
        expectError(await ask('GET', path, { as: null }), 404, { code: 'not_found' });
    },
  ),
  row('Everywhere: DELETE /logout 204', `DELETE /logout, ${ME}`, async tools => {
    const { headers } = await logIn(tools);
    expectAnswer(await tools.ask('GET', '/users/-', { as: null, headers }), 200);
    expectAnswer(await tools.ask('DELETE', '/logout', { as: null, headers }), 204);
    expectError(await tools.ask('GET', '/users/-', { as: null, headers }), 401, {
      code: 'unauthorized',
    });
  }),
  row('Everywhere: GET /users/- who am I', ME, async ({ ask, world }) => {
    const { username } = world.user;
    const me = (await ask('GET', '/users/-')).json();
    expect(me).toMatchObject({ username, administrator: expect.any(Boolean) });
    expect(JSON.stringify(me)).not.toMatch(/password|hash/i);
  }),
  row(
    'Everywhere: Authorization: Bearer with an API token',
    `POST /users/-/tokens, GET /users/-/tokens, DELETE /users/-/tokens/{id}, ${ME}`,
    async ({ ask, world }) => {
      const json = { name: world.name('token'), scope: 'read' };
      const made = await ask('POST', '/users/-/tokens', { json });
      expectAnswer(made, 201);
      const { id, token } = made.json<{ id: string; token: string }>();
      const headers = { Authorization: `Bearer ${token}` };
      expectAnswer(await ask('GET', '/users/-', { as: null, headers }), 200);
      const refused = await ask('POST', '/projects', { as: null, headers, json: { name: 'p' } });
      expectError(refused, 403, { code: 'forbidden' });
      const listed = await ask('GET', '/users/-/tokens?limit=1000');
      expect(listed.json().items).toContainEqual(expect.objectContaining({ id, scope: 'read' }));
      expect(listed.text).not.toContain(token);
      expectAnswer(await ask('DELETE', `/users/-/tokens/${id}`), 204);
      expectError(await ask('GET', '/users/-', { as: null, headers }), 401, {
        code: 'unauthorized',
      });
    },
  ),
  row(
    'Everywhere: open to everyone are /, /healthz, /readyz, login and the description',
    'GET /, GET /healthz, GET /readyz, GET /api/openapi.json, GET /api/docs',
    async ({ ask }) => {
      for (const path of ['/', '/healthz', '/readyz', '/api/openapi.json', '/api/docs'])
        expectAnswer(await ask('GET', path, { as: null }), 200);
    },
  ),
  row(
    'Everywhere: all else needs credentials: 401 with WWW-Authenticate: Basic',
    `${ME}, GET /metrics, GET /admin/queues`,
    async ({ ask, world }) => {
      const closed = world.description
        .operations()
        .filter(name => !/^GET \/(healthz|readyz|api\/.*|login\/.*)?$|POST \/login$/.test(name));
      // All but the five that are open to everyone, and the three of logins.
      expect(closed).toHaveLength(world.description.operations().length - 8);
      expect(closed.length).toBeGreaterThan(50);
      for (const name of closed) {
        const [method = '', template = ''] = name.split(' ');
        const path = template.replace(/\{\w+\}/g, 'x');
        const answer = await ask(method, path, { as: null });
        // An answer to HEAD has no body.
        if (method === 'HEAD') expect(answer.status).toBe(401);
        else expectError(answer, 401, { code: 'unauthorized' });
        expect([name, answer.headers['www-authenticate']]).toEqual([
          name,
          expect.stringMatching(/^Basic /),
        ]);
      }
    },
  ),
  row('Everywhere: a 401 to a script carries Bearer', ME, async ({ ask }) => {
    const headers = { 'X-Requested-With': 'XMLHttpRequest' };
    const answer = await ask('GET', '/users/-', { as: null, headers });
    expectError(answer, 401, { code: 'unauthorized' });
    expect(answer.headers['www-authenticate']).toBe('Bearer');
  }),
  row(
    'Everywhere: /metrics and /admin/queues need a server administrator',
    'GET /metrics, GET /admin/queues',
    async ({ ask, make }) => {
      const as = await make.person('stranger');
      for (const path of ['/metrics', '/admin/queues']) {
        expectAnswer(await ask('GET', path, { headers: { Accept: '*/*' } }), 200);
        expectError(await ask('GET', path, { as }), 403, { code: 'forbidden' });
        expectError(await ask('GET', path, { as: null }), 401, { code: 'unauthorized' });
      }
    },
  ),
  row(
    'Everywhere: browser writes by cookie need a same-origin Origin, else 403',
    'POST /projects/{pid}/models',
    async tools => {
      const { ask, make } = tools;
      const { headers } = await logIn(tools);
      const { pid } = await make.projectWithModel();
      const json = { 'model-type': 'any', name: 'by cookie' };
      const post = (more: object) =>
        ask('POST', `/projects/${pid}/models`, {
          as: null,
          headers: { ...headers, ...more },
          json,
        });
      expectAnswer(await post({}), 201);
      for (const Origin of ['https://elsewhere.example', 'null'])
        expectError(await post({ Origin }), 403, { code: 'forbidden' });
    },
  ),
  row(
    'Everywhere: a GET by cookie that writes needs Sec-Fetch-Site: same-origin or a same-origin Referer',
    'GET /remotes/{sid}/videos/{vsid}',
    async tools => {
      const { ask, make, world } = tools;
      const { Cookie } = (await logIn(tools)).headers;
      const { pid } = await make.projectWithModel();
      const { path } = await make.video();
      const get = (more: Record<string, string>) =>
        ask('GET', `${path}?cache=project&project=${pid}&key=k`, {
          as: null,
          headers: { Cookie, ...more },
        });
      for (const [name, value] of [
        ['Sec-Fetch-Site', 'same-origin'],
        ['Referer', `${world.url}/page`],
      ] as const)
        expectAnswer(await get({ [name]: value }), 200, { type: 'video/mp4' });
      for (const wrong of [
        {},
        { 'Sec-Fetch-Site': 'cross-site' },
        { Referer: 'https://e.example/' },
      ])
        expectError(await get(wrong as Record<string, string>), 403, { code: 'forbidden' });
    },
    'host',
  ),
];
