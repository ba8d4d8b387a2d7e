import { createHash } from 'node:crypto';
import { expect } from 'vitest';
import { HOST_KEY } from '../fixtures.ts';
import { type Row, row } from '../row.ts';
import { expectAnswer, expectError } from '../tools.ts';

/** The fingerprint that ssh-keygen -l prints. */
const HOST_FINGERPRINT = `SHA256:${createHash('sha256')
  .update(Buffer.from(HOST_KEY.split(' ')[1] ?? '', 'base64'))
  .digest('base64')
  .replace(/=+$/, '')}`;
const at = (words: string) => `Hosts, users, tokens: ${words}`;

/** Operations of hosts, users, tokens and links. */
export const ACCOUNTS: Row[] = [
  row(
    at('POST /hosts 201 with the pinned fingerprints; GET, PUT, DELETE /hosts/(name)'),
    'POST /hosts, GET /hosts, GET /hosts/{name}, PUT /hosts/{name}, DELETE /hosts/{name}',
    async ({ ask, world }) => {
      const name = world.name('host');
      const json = { name, address: '192.0.2.1', port: 2222, keys: [HOST_KEY], agent: false };
      const added = await ask('POST', '/hosts', { json });
      expectAnswer(added, 201);
      expect(added.json()).toMatchObject({
        ...json,
        private: false,
        fingerprints: [HOST_FINGERPRINT],
      });
      expect(added.headers.location).toBe(`/api/hosts/${name}`);
      expectError(await ask('POST', '/hosts', { json }), 409, { code: 'conflict' });
      const listed = (await ask('GET', '/hosts?limit=1000')).json();
      expect(listed.items).toContainEqual(expect.objectContaining({ name, agent: false }));
      expectAnswer(await ask('PUT', `/hosts/${name}`, { json: { agent: true } }), 200);
      const changed = { ...json, agent: true };
      expect((await ask('GET', `/hosts/${name}`)).json()).toMatchObject(changed);
      expectAnswer(await ask('DELETE', `/hosts/${name}`), 204);
      for (const method of ['GET', 'DELETE'])
        expectError(await ask(method, `/hosts/${name}`), 404, { code: 'not_found' });
    },
  ),
  row(
    "Remote sessions: a host's entry adds jump, another host here, which is kept while it is needed",
    'POST /hosts, PUT /hosts/{name}, DELETE /hosts/{name}, POST /remotes',
    async ({ ask, world }) => {
      const [gate, node] = [world.name('gate'), world.name('node')];
      const json = { address: '192.0.2.1', keys: [HOST_KEY] };
      const added = await ask('POST', '/hosts', { json: { ...json, name: gate } });
      expect(added.json()).toMatchObject({ jump: null });
      const behind = { ...json, name: node, jump: gate };
      expect((await ask('POST', '/hosts', { json: behind })).json()).toMatchObject({ jump: gate });
      for (const [method, path, wrong] of [
        ['POST', '/hosts', { ...behind, name: world.name('other'), jump: world.name('none') }],
        ['POST', '/hosts', { name: world.name('other'), jump: gate, trust: 'now' }],
        ['PUT', `/hosts/${gate}`, { jump: node }],
        ['POST', '/remotes', { hostname: gate, username: 'u', jump: { username: 'u' } }],
        ['POST', '/remotes', { hostname: node, username: 'u', jump: { password: 'p' } }],
      ] as const)
        expectError(await ask(method, path, { json: wrong }), 400, { code: 'invalid_input' });
      expectError(await ask('DELETE', `/hosts/${gate}`), 409, { code: 'conflict' });
      for (const name of [node, gate]) expectAnswer(await ask('DELETE', `/hosts/${name}`), 204);
    },
  ),
  row(
    at('keys, or trust: "now", one of the two; agent is true, private false unless given'),
    'POST /hosts, DELETE /hosts/{name}',
    async ({ ask, world }) => {
      const name = world.name('host');
      for (const more of [{}, { keys: [HOST_KEY], trust: 'now' }, { trust: 'later' }, { keys: [] }])
        expectError(await ask('POST', '/hosts', { json: { name, ...more } }), 400, {
          code: 'invalid_input',
        });
      const added = (await ask('POST', '/hosts', { json: { name, keys: [HOST_KEY] } })).json();
      expect(added).toMatchObject({ address: name, port: 22, agent: true, private: false });
      expectAnswer(await ask('DELETE', `/hosts/${name}`), 204);
    },
  ),
  row(
    at('keys may hold authorities, @cert-authority lines of known_hosts that fit the address'),
    'POST /hosts, PUT /hosts/{name}, DELETE /hosts/{name}',
    async ({ ask, world }) => {
      const json = { name: world.name('certified'), address: 'node1.example.org' };
      const pin = (hosts: string) => `@cert-authority ${hosts} ${HOST_KEY}`;
      for (const wrong of [pin('*.example.com'), `@revoked * ${HOST_KEY}`])
        expectError(await ask('POST', '/hosts', { json: { ...json, keys: [wrong] } }), 400, {
          code: 'invalid_input',
        });
      const keys = [pin('*.example.org')];
      const added = await ask('POST', '/hosts', { json: { ...json, keys } });
      expect(added.json()).toMatchObject({ keys });
      expect(added.json().fingerprints).toHaveLength(1);
      const path = `/hosts/${json.name}`;
      const moved = { address: 'node1.example.com' };
      expectError(await ask('PUT', path, { json: moved }), 400, { code: 'invalid_input' });
      expectAnswer(await ask('DELETE', path), 204);
    },
  ),
  row(
    at('POST /hosts/-/scan: the keys that a machine shows, before it is added'),
    'POST /hosts/-/scan',
    async ({ ask, world }) => {
      const sshd = world.sshd;
      const json = { address: sshd?.host, port: sshd?.port, private: true };
      const shown = await ask('POST', '/hosts/-/scan', { json });
      const { keys, fingerprints } = shown.json<Record<'keys' | 'fingerprints', string[]>>();
      expect(keys).toContain(sshd?.hostKey);
      expect(fingerprints).toHaveLength(keys.length);
      const refused = { ...json, private: false };
      expectError(await ask('POST', '/hosts/-/scan', { json: refused }), 403, {
        code: 'host_not_allowed',
      });
    },
    'host',
  ),
  row(
    at('trust: "now": a worker connects once and keeps what it is shown'),
    'POST /hosts, DELETE /hosts/{name}',
    async ({ ask, world }) => {
      const name = world.name('trusted');
      const sshd = world.sshd;
      const where = { name, address: sshd?.host, port: sshd?.port, trust: 'now' };
      expectError(await ask('POST', '/hosts', { json: where }), 403, { code: 'host_not_allowed' });
      const added = await ask('POST', '/hosts', { json: { ...where, private: true } });
      expectAnswer(added, 201);
      expect(added.json().keys).toContain(sshd?.hostKey);
      const { keys, fingerprints } = added.json<Record<'keys' | 'fingerprints', string[]>>();
      expect(fingerprints).toHaveLength(keys.length);
      expectAnswer(await ask('DELETE', `/hosts/${name}`), 204);
    },
    'host',
  ),
  row(
    at('every user sees of hosts the names and whether an agent; others may not change them'),
    'GET /hosts, GET /hosts/{name}, POST /hosts, PUT /hosts/{name}, DELETE /hosts/{name}',
    async ({ ask, make, world }) => {
      const as = await make.person('stranger');
      const name = world.name('host');
      await make.call('POST', '/hosts', { json: { name, keys: [HOST_KEY] } });
      const short = { name, agent: true };
      expectAnswer(await ask('GET', `/hosts/${name}`, { as }), 200, { json: short });
      const { items } = (await ask('GET', '/hosts?limit=1000', { as })).json();
      expect(items).toContainEqual(short);
      for (const [method, path, json] of [
        ['POST', '/hosts', { name: 'n', keys: [HOST_KEY] }],
        ['PUT', `/hosts/${name}`, { agent: false }],
        ['DELETE', `/hosts/${name}`, undefined],
      ] as const)
        expectError(await ask(method, path, { as, json }), 403, { code: 'forbidden' });
      await make.call('DELETE', `/hosts/${name}`);
    },
  ),
  row(
    at('POST /users 201; GET, PUT, DELETE /users/(username)'),
    'POST /users, GET /users, GET /users/{username}, PUT /users/{username}, DELETE /users/{username}, GET /users/-, GET /audit',
    async ({ ask, world }) => {
      const username = world.name('user');
      const json = { username, password: 'a long password' };
      const added = await ask('POST', '/users', { json });
      expectAnswer(added, 201);
      expect(added.headers.location).toBe(`/api/users/${username}`);
      expectError(await ask('POST', '/users', { json }), 409, { code: 'conflict' });
      const { items } = (await ask('GET', '/users?limit=1000')).json();
      expect(items).toContainEqual(expect.objectContaining({ username, administrator: false }));
      const path = `/users/${username}`;
      expectAnswer(await ask('PUT', path, { json: { administrator: true } }), 200);
      expect((await ask('GET', path)).json()).toMatchObject({ username, administrator: true });
      const as = { username, password: json.password };
      expectAnswer(await ask('GET', '/users', { as }), 200);
      expectAnswer(await ask('DELETE', path), 204);
      expectError(await ask('GET', path), 404, { code: 'not_found' });
      expectError(await ask('GET', '/users/-', { as }), 401, { code: 'unauthorized' });
      const told = (await ask('GET', '/audit?action=user.delete&limit=1000')).json().items;
      expect(told).toContainEqual(
        expect.objectContaining({ action: 'user.delete', target: username, outcome: 'ok' }),
      );
    },
  ),
  row(
    at('anyone may change their own password, and nothing else of users'),
    'PUT /users/{username}, DELETE /users/{username}, GET /users, GET /users/-, POST /users',
    async ({ ask, make }) => {
      const [user, other] = [await make.newUser(), await make.person('stranger')];
      const path = `/users/${user.username}`;
      const next = { ...user, password: 'another password' };
      const json = { password: next.password };
      const current = user.password;
      expectError(await ask('PUT', path, { as: user, json }), 400, { code: 'invalid_input' });
      const wrong = { ...json, current: 'a wrong one' };
      expectError(await ask('PUT', path, { as: user, json: wrong }), 403, { code: 'forbidden' });
      expectAnswer(await ask('PUT', path, { as: user, json: { ...json, current } }), 200);
      expectAnswer(await ask('GET', '/users/-', { as: next }), 200);
      expectError(await ask('GET', '/users/-', { as: user }), 401, { code: 'unauthorized' });
      for (const [method, where, body] of [
        ['PUT', path, { administrator: true }],
        ['PUT', `/users/${other.username}`, json],
        ['GET', '/users', undefined],
        ['DELETE', `/users/${other.username}`, undefined],
        ['POST', '/users', { username: 'x', password: 'a long password' }],
      ] as const)
        expectError(await ask(method, where, { as: next, json: body }), 403, { code: 'forbidden' });
    },
  ),
  row(
    at('POST /users/-/tokens 201 {id, token}; expires'),
    'POST /users/-/tokens, GET /users/-/tokens, DELETE /users/-/tokens/{id}, GET /users/{username}/tokens, DELETE /users/{username}/tokens/{id}',
    async ({ ask, make, world }) => {
      const name = world.name('token');
      const made = await ask('POST', '/users/-/tokens', {
        json: { name, scope: 'write', expires: '2099-01-01T00:00:00Z' },
      });
      expectAnswer(made, 201);
      const { id, token } = made.json();
      expect(made.json()).toEqual({ id: expect.any(String), token: expect.stringMatching(/./) });
      const { items } = (await ask('GET', '/users/-/tokens?limit=1000')).json();
      const expires = '2099-01-01T00:00:00.000Z';
      expect(items).toContainEqual({
        id,
        name,
        scope: 'write',
        created: expect.any(String),
        expires,
        used: null,
      });
      const headers = { Authorization: `Bearer ${token}` };
      const project = await ask('POST', '/projects', { as: null, headers, json: { name } });
      expectAnswer(project, 201);
      await make.call('DELETE', `/projects/${project.json().id}`);
      expectAnswer(await ask('DELETE', `/users/-/tokens/${id}`), 204);
      const user = await make.newUser();
      const json = { name, scope: 'read' };
      const theirs = (await ask('POST', '/users/-/tokens', { as: user, json })).json();
      const path = `/users/${user.username}/tokens`;
      const listed = (await ask('GET', path)).json();
      expect(listed.items).toMatchObject([{ id: theirs.id, name, used: null }]);
      expectError(await ask('GET', path, { as: user }), 403, { code: 'forbidden' });
      expectAnswer(await ask('DELETE', `${path}/${theirs.id}`), 204);
      expect((await ask('GET', path)).json().items).toEqual([]);
      const past = '2020-01-01T00:00:00Z';
      for (const json of [
        { name },
        { name, scope: 'all' },
        { name, scope: 'read', expires: 'x' },
        { name, scope: 'read', expires: past },
      ])
        expectError(await ask('POST', '/users/-/tokens', { json }), 400, { code: 'invalid_input' });
    },
  ),
  row(
    at('POST /links 201 {url, expires}: GET of that path without other credentials'),
    'POST /links, GET /jobs, GET /remotes/{sid}/videos/{vsid}',
    async ({ ask, look, prefix }) => {
      const linkTo = async (path: string) => {
        const made = await look('POST', '/links', { json: { path: prefix + path } });
        expectAnswer(made, 201);
        const { url, expires } = made.json<{ url: string; expires: string }>();
        expect(Date.parse(expires)).toBeGreaterThan(Date.now());
        return `link=${new URL(url).searchParams.get('link')}`;
      };
      const link = await linkTo('/jobs?limit=1');
      expectAnswer(await look('GET', `/jobs?limit=1&${link}`, { as: null }), 200);
      for (const path of ['/projects?', '/jobs?limit=2&', '/jobs?'])
        expectError(await ask('GET', path + link, { as: null }), 401, { code: 'unauthorized' });
      const video = '/remotes/none/videos/none';
      const writing = await look('GET', `${video}?cache=project&${await linkTo(video)}`, {
        as: null,
      });
      expectError(writing, 403, { code: 'forbidden' });
      for (const json of [{}, { path: '/healthz' }, { path: '/api/jobs', seconds: 90_000 }])
        expectError(await ask('POST', '/links', { json }), 400, { code: 'invalid_input' });
    },
  ),
];
