import { expect } from 'vitest';
import { HOST_KEY } from '../fixtures.ts';
import { type Row, row } from '../row.ts';
import { expectAnswer, expectError } from '../tools.ts';

const at = (words: string) => `decisions, Everywhere: ${words}`;

/** decisions.md, Everywhere: what is left of conditions, and of limits of single records. */
export const CONDITIONS: Row[] = [
  row(
    at('If-Match on PUT and DELETE of hosts and users'),
    'PUT /hosts/{name}, DELETE /hosts/{name}, PUT /users/{username}, DELETE /users/{username}',
    async ({ ask, make, world }) => {
      const { username } = await make.newUser();
      const name = world.name('host');
      await make.call('POST', '/hosts', { json: { name, keys: [HOST_KEY] } });
      for (const [path, json] of [
        [`/hosts/${name}`, { agent: false }],
        [`/users/${username}`, { administrator: true }],
      ] as const) {
        const stale = { 'If-Match': '"stale"' };
        for (const [method, body] of [
          ['PUT', json],
          ['DELETE', undefined],
        ] as const)
          expectError(await ask(method, path, { headers: stale, json: body }), 412, {
            code: 'precondition_failed',
          });
        const tag = async () => ({ 'If-Match': (await ask('GET', path)).headers.etag ?? '' });
        expectAnswer(await ask('PUT', path, { headers: await tag(), json }), 200);
        expectAnswer(await ask('DELETE', path, { headers: await tag() }), 204);
      }
    },
    'administrator',
  ),
  row(
    at('If-Match on DELETE of a session and of what it made'),
    'DELETE /remotes/{sid}, DELETE /projects/{pid}/cache/{key}',
    async ({ ask, make, world }) => {
      const { pid } = await make.place();
      const { path } = await make.video();
      const key = world.name('tagged');
      await make.call('GET', `${path}?cache=project&project=${pid}&key=${key}`);
      for (const record of [
        `/remotes/${await make.newSession(false)}`,
        `/projects/${pid}/cache/${key}`,
      ]) {
        const stale = await ask('DELETE', record, { headers: { 'If-Match': '"stale"' } });
        expectError(stale, 412, { code: 'precondition_failed' });
        const found = await ask('GET', record);
        expectAnswer(found, 200);
        const headers = { 'If-Match': found.headers.etag ?? '' };
        expectAnswer(await ask('DELETE', record, { headers }), 204, {
          reason: expect.stringMatching(/deleted\.$/),
        });
      }
    },
    'host',
  ),
  row(at('422 never'), 'GET /api/openapi.json', async ({ ask }) => {
    const { paths } = (await ask('GET', '/api/openapi.json')).json<{
      paths: Record<string, Record<string, { responses: object }>>;
    }>();
    const statuses = Object.values(paths).flatMap(methods =>
      Object.values(methods).flatMap(({ responses }) => Object.keys(responses)),
    );
    expect(statuses).toContain('400');
    expect(statuses).not.toContain('422');
  }),
  row(at('bookmarks take 16 MiB, too'), 'POST /projects/{pid}/bookmarks', async ({ ask, make }) => {
    const path = `/projects/${(await make.place()).pid}/bookmarks`;
    const state = (bytes: number) => ({ json: { state: 'x'.repeat(bytes) } });
    const made = await ask('POST', path, state(2 << 20));
    expectAnswer(made, 201);
    expectError(await ask('POST', path, state(16 << 20)), 413, { code: 'payload_too_large' });
    await make.call('DELETE', `/bookmarks/${made.json().id}`);
  }),
  row(
    at('bookmarks have no ETag: they are no-store'),
    'GET /bookmarks/{bid}',
    async ({ ask, make }) => {
      const { pid } = await make.place();
      const made = await make.call('POST', `/projects/${pid}/bookmarks`, { json: { tag: 'none' } });
      const { headers } = await ask('GET', `/bookmarks/${made.json().id}`);
      expect(headers).not.toHaveProperty('etag');
      expect(headers['cache-control']).toContain('no-store');
    },
  ),
];
