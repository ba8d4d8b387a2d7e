import { expect } from 'vitest';
import { type Row, row } from '../row.ts';
import { send } from '../send.ts';
import { expectAnswer, expectError, type Tools } from '../tools.ts';
import { OPEN_UPLOADS } from '../world.ts';

const UNKNOWN = '00000000000000000000000000';
const JSON_TYPE = { 'Content-Type': 'application/json' };
const at = (words: string) => `decisions, Everywhere: ${words}`;

const newProject = async ({ make }: Tools) => `/projects/${await make.newProject()}`;

/** decisions.md, Everywhere; of authentication and access in files of their own. */
export const EVERYWHERE: Row[] = [
  row(
    at('/, /healthz, /readyz, /metrics and /admin/queues exist once, without the prefix'),
    'GET /, GET /healthz, GET /readyz, GET /metrics, GET /admin/queues',
    async ({ ask }) => {
      for (const path of ['/', '/healthz', '/readyz', '/metrics', '/admin/queues']) {
        expectAnswer(await ask('GET', path), 200);
        if (path !== '/') expectError(await ask('GET', `/api${path}`), 404, {});
      }
    },
    'administrator',
  ),
  row(
    at('/api/openapi.json and /api/docs exist once, with it'),
    'GET /api/openapi.json, GET /api/docs',
    async ({ ask, world }) => {
      for (const path of ['/api/openapi.json', '/api/docs']) {
        expectAnswer(await ask('GET', path, { as: null }), 200);
        const target = path.replace('/api', '');
        const bare = await send(world.url, { method: 'GET', target, as: world.user });
        expectError(bare, 404, { code: 'not_found' });
      }
    },
  ),
  row(
    at('errors are problem documents with type, title, status, detail, code'),
    'GET /jobs/{id}',
    async ({ ask }) => {
      const answer = await ask('GET', `/jobs/${UNKNOWN}`);
      expect(answer.headers['content-type']).toMatch(/^application\/problem\+json/);
      expect(expectError(answer, 404, { code: 'not_found' })).toMatchObject({
        type: expect.stringMatching(/./),
        title: 'Not found',
        hint: expect.stringMatching(/./),
      });
    },
  ),
  row(at('400 names each wrong field, unknown ones too'), 'POST /projects', async ({ ask }) => {
    const json = { name: 7, unheard: 1, description: [] };
    const { fields } = expectError(await ask('POST', '/projects', { json }), 400, {
      code: 'invalid_input',
    });
    expect(fields?.map(({ field }) => field).sort()).toEqual(['description', 'name', 'unheard']);
  }),
  row(
    at('404 for what does not exist'),
    'GET /remotes/{sid}, GET /uploads/{uid}',
    async ({ ask }) => {
      for (const path of ['/nothing/here', `/remotes/${UNKNOWN}`, `/uploads/${UNKNOWN}`, '/jobs/1'])
        expectError(await ask('GET', path), 404, {});
    },
  ),
  row(at('405 with Allow'), 'GET /jobs', async ({ ask }) => {
    await ask('GET', '/jobs');
    for (const [method, path, allow] of [
      ['PUT', '/jobs', 'GET, HEAD'],
      ['PATCH', '/projects', 'GET, POST, HEAD'],
      ['GET', '/remotes/launch', 'POST'],
      ['GET', '/events/any', 'POST'],
      ['DELETE', '/configuration/parsers', 'GET, HEAD'],
    ] as const) {
      const answer = await ask(method, path);
      expectError(answer, 405, { code: 'method_not_allowed' });
      expect(answer.headers.allow?.split(', ').sort()).toEqual(allow.split(', ').sort());
    }
  }),
  row(
    at('413 beyond 1 MiB of JSON; parameters and bookmarks take 16 MiB'),
    'POST /projects, PUT /models/{mid}/parameters/{aid}',
    async ({ ask, make, world }) => {
      const json = { name: 'p', description: 'x'.repeat(1 << 20) };
      expectError(await ask('POST', '/projects', { json }), 413, { code: 'payload_too_large' });
      const path = `/models/${(await make.place()).mid}/parameters/${world.name('big')}`;
      const value = (bytes: number) => ({ json: { value: 'x'.repeat(bytes) } });
      expectAnswer(await ask('PUT', path, value(2 << 20)), 200);
      expectError(await ask('PUT', path, value(16 << 20)), 413, { code: 'payload_too_large' });
      await make.call('DELETE', path);
    },
  ),
  row(at('414 and 431 for an address or headers too long'), 'GET /jobs', async ({ ask }) => {
    const long = await ask('GET', `/jobs?after=${'x'.repeat(9_000)}`);
    expectError(long, 414, { code: 'address_too_long', reason: expect.stringMatching(/./) });
    const headers = { 'X-Long': 'x'.repeat(40_000) };
    const answer = await ask('GET', '/jobs', { headers });
    expectError(answer, 431, { code: 'headers_too_large', reason: expect.stringMatching(/./) });
  }),
  row(at('415 for what is not JSON'), 'POST /projects', async ({ ask }) => {
    const headers = { 'Content-Type': 'text/plain' };
    const answer = await ask('POST', '/projects', { body: '{"name":"p"}', headers });
    expectError(answer, 415, { code: 'unsupported_media_type' });
  }),
  row(
    at('never a 500 for bad input: JSON is UTF-8, at most 100 deep, whole'),
    'POST /projects',
    async ({ ask }) => {
      const deep = `${'['.repeat(101)}${']'.repeat(101)}`;
      for (const body of ['{', '', deep, new Uint8Array([0x22, 0xff, 0x22]), '{"name":"\\u0000"}'])
        expectError(await ask('POST', '/projects', { body, headers: JSON_TYPE }), 400, {});
      for (const path of ['/jobs/%FF', '/projects/%zz'])
        expectError(await ask('GET', path), 400, { code: 'bad_request' });
    },
  ),
  row(at('times are ISO 8601 in UTC'), 'GET /users/-', async ({ ask }) => {
    const { created } = (await ask('GET', '/users/-')).json<{ created: string }>();
    expect(new Date(created).toISOString()).toBe(created);
  }),
  row(
    at('PUT answers 200 and takes part of a record, DELETE 204'),
    'PUT /projects/{pid}, DELETE /projects/{pid}',
    async tools => {
      const path = await newProject(tools);
      const { name } = (await tools.make.call('GET', path)).json();
      const changed = await tools.ask('PUT', path, { json: { description: 'd' } });
      expectAnswer(changed, 200);
      expect(changed.json()).toMatchObject({ name, description: 'd' });
      expect((await tools.ask('DELETE', path)).status).toBe(204);
    },
  ),
  row(
    at('lists are paginated: ?limit=&after=, {items, next}'),
    'GET /projects, GET /projects/{pid}/models',
    async ({ ask, make }) => {
      const pid = await make.newProject();
      for (let i = 0; i < 3; i++) await make.newModel(pid);
      const list = `/projects/${pid}/models`;
      const first = (await ask('GET', `${list}?limit=2`)).json<{
        items: unknown[];
        next: string;
      }>();
      expect([first.items.length, typeof first.next]).toEqual([2, 'string']);
      const second = await ask('GET', `${list}?limit=2&after=${encodeURIComponent(first.next)}`);
      expect(second.json()).toMatchObject({ items: [expect.anything()], next: null });
      for (const query of ['limit=0', 'limit=x', 'limit=9999', 'other=1'])
        expectError(await ask('GET', `/projects?${query}`), 400, { code: 'invalid_input' });
    },
  ),
  row(
    at('ETag and If-None-Match on every GET of a record'),
    'GET /projects/{pid}, GET /models/{mid}, GET /users/-, GET /uploads/{uid}, GET /jobs/{id}, GET /configuration/parsers',
    async ({ ask, make, ended }) => {
      const { pid, mid } = await make.place();
      await make.call('PUT', `/models/${mid}/parameters/tagged`, { json: { value: 1 } });
      const uid = await make.newUpload();
      await make.putPart(uid, [0, 0], 'x');
      const json = { uploaded: [1] };
      const { job } = (await make.call('POST', `/uploads/${uid}/finished`, { json })).json();
      await ended(String(job));
      for (const path of [
        `/projects/${pid}`,
        `/models/${mid}`,
        `/models/${mid}/parameters/tagged`,
        `/users/-`,
        `/uploads/${uid}`,
        `/jobs/${job}`,
        '/configuration/parsers',
      ]) {
        const tag = (await ask('GET', path)).headers.etag ?? '';
        expect([path, tag]).toEqual([path, expect.stringMatching(/^"[^"]+"$/)]);
        const again = await ask('GET', path, { headers: { 'If-None-Match': tag } });
        expectAnswer(again, 304);
        expect([again.bytes.length, again.headers.etag]).toEqual([0, tag]);
      }
    },
  ),
  row(
    at('If-Match on PUT and DELETE, 412'),
    'PUT /projects/{pid}, DELETE /projects/{pid}',
    async tools => {
      const path = await newProject(tools);
      const stale = { 'If-Match': '"stale"' };
      const change = { headers: stale, json: { description: 'd' } };
      expectError(await tools.ask('PUT', path, change), 412, { code: 'precondition_failed' });
      expectError(await tools.ask('DELETE', path, { headers: stale }), 412, {});
      const tag = (await tools.ask('GET', path)).headers.etag ?? '';
      const put = await tools.ask('PUT', path, { ...change, headers: { 'If-Match': tag } });
      expectAnswer(put, 200);
      await tools.make.call('DELETE', path);
    },
  ),
  row(
    at('Idempotency-Key: the same again gives the same job, with another body 409'),
    'POST /uploads/{uid}/finished',
    async ({ ask, make, world }) => {
      const uid = await make.newUpload();
      await make.putPart(uid, [0, 0], 'x');
      const headers = { 'Idempotency-Key': world.name('key') };
      const finish = (n: number) =>
        ask('POST', `/uploads/${uid}/finished`, { headers, json: { uploaded: [n] } });
      const first = await finish(1);
      expectAnswer(first, 202);
      expectAnswer(await finish(1), 202, { json: first.json() });
      expectError(await finish(2), 409, { code: 'idempotency_conflict' });
    },
  ),
  row(
    at('ETag and If-None-Match on what a session is needed for, and on hosts and tables'),
    'GET /remotes/{sid}, GET /remotes/{sid}/videos/{vsid}/status, GET /hosts/{name}, GET /models/{mid}/tables/{aid}/metadata',
    async ({ ask, make, world }) => {
      const { sid, path } = await make.video();
      for (const record of [
        `/remotes/${sid}`,
        `${path}/status`,
        `/hosts/${world.host?.hostname}`,
        `${await make.table()}/metadata`,
      ]) {
        const tag = (await ask('GET', record)).headers.etag ?? '';
        expect([record, tag]).toEqual([record, expect.stringMatching(/^"[^"]+"$/)]);
        expectAnswer(await ask('GET', record, { headers: { 'If-None-Match': tag } }), 304);
      }
    },
    'host',
  ),
  row(
    at('If-Match on PUT and DELETE of every record'),
    'PUT /models/{mid}, DELETE /models/{mid}, PUT /models/{mid}/parameters/{aid}, DELETE /models/{mid}/parameters/{aid}, DELETE /uploads/{uid}, DELETE /jobs/{id}, DELETE /models/{mid}/files/{aid}, DELETE /models/{mid}/tables/{aid}',
    async ({ ask, make, world }) => {
      const mid = await make.newModel((await make.place()).pid);
      const [model, parameter] = [`/models/${mid}`, `/models/${mid}/parameters/p`];
      await make.call('PUT', parameter, { json: { value: 1 } });
      const headers = { 'If-Match': '"stale"' };
      const { id: job } = await make.parse(world.name('done'), 'x', 'blob');
      for (const [method, path, json] of [
        ['PUT', parameter, { value: 2 }],
        ['DELETE', parameter, undefined],
        ['PUT', model, { name: 'n' }],
        ['DELETE', model, undefined],
        ['DELETE', `/uploads/${await make.newUpload()}`, undefined],
        ['DELETE', `/jobs/${job}`, undefined],
        ['DELETE', await make.file(), undefined],
        ['DELETE', await make.table(), undefined],
      ] as const)
        expectError(await ask(method, path, { headers, json }), 412, {
          code: 'precondition_failed',
        });
      const tag = (await ask('GET', model)).headers.etag ?? '';
      expectAnswer(await ask('DELETE', model, { headers: { 'If-Match': tag } }), 204);
    },
  ),
  row(
    at('429 with Retry-After for more than one user may have'),
    'POST /uploads',
    async ({ ask, make, world }) => {
      const as = await make.newUser();
      const project = { name: world.name('full') };
      const { id: pid } = (await make.call('POST', '/projects', { as, json: project })).json();
      const model = { 'model-type': 'any', name: 'm' };
      const { id: mid } = (
        await make.call('POST', `/projects/${pid}/models`, { as, json: model })
      ).json();
      const json = { mid, input: true, parser: 'blob', aids: ['a'] };
      for (let n = 0; n < OPEN_UPLOADS; n++) await make.call('POST', '/uploads', { as, json });
      const refused = await ask('POST', '/uploads', { as, json });
      expectError(refused, 429, { code: 'too_many_requests' });
      expect(refused.headers).toHaveProperty('retry-after');
    },
    'own',
  ),
  row(
    at('a part has 5 GiB at most'),
    'PUT /uploads/{uid}/files/{fid}/parts/{part}',
    async ({ ask, make }) => {
      const path = `/uploads/${await make.newUpload()}/files/0/parts/0`;
      const type = { 'Content-Type': 'application/octet-stream' };
      const headers = { ...type, 'Content-Length': String(5 * 2 ** 30 + 1) };
      const refused = await ask('PUT', path, { headers });
      expectError(refused, 413, { code: 'payload_too_large', reason: expect.any(String) });
    },
  ),
  row(
    at('409 for a wrong state'),
    'PUT /uploads/{uid}/files/{fid}/parts/{part}',
    async ({ ask, make, world }) => {
      const { uid } = await make.parse(world.name('done'), 'x', 'blob');
      const headers = { 'Content-Type': 'application/octet-stream' };
      const part = await ask('PUT', `/uploads/${uid}/files/0/parts/0`, { headers, body: 'x' });
      expectError(part, 409, { code: 'conflict' });
    },
  ),
  row(
    'decisions, Running it: when it can serve, GET /readyz answers 200',
    'GET /readyz',
    async ({ ask }) => {
      const answer = await ask('GET', '/readyz', { as: null });
      expectAnswer(answer, 200);
      expect(answer.json()).toMatchObject({ ready: true });
    },
  ),
];
