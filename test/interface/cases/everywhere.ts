import { expect } from 'vitest';
import { type Row, row } from '../row.ts';
import { send } from '../send.ts';
import { expectAnswer, expectError, type Tools } from '../tools.ts';
import { OPEN_UPLOADS } from '../world.ts';

const UNKNOWN = '00000000000000000000000000';
const JSON_TYPE = { 'Content-Type': 'application/json' };
const at = (words: string) => `Everywhere: ${words}`;

const newProject = async ({ make }: Tools) => `/projects/${await make.newProject()}`;

/** What every operation does alike; authentication and access have files of their own. */
export const EVERYWHERE: Row[] = [
  row(
    at('/, /healthz, /readyz, /metrics and /admin/queues exist once, without the prefix'),
    'GET /, GET /healthz, GET /readyz, GET /metrics, GET /admin/queues',
    async ({ ask }) => {
      for (const path of ['/', '/healthz', '/readyz', '/metrics', '/admin/queues']) {
        expectAnswer(await ask('GET', path), 200);
        if (path !== '/') expectError(await ask('GET', `/api${path}`), 404, { code: 'not_found' });
      }
    },
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
    'GET /remotes/{sid}, GET /uploads/{uid}, GET /jobs/{id}',
    async ({ ask }) => {
      for (const [path, code] of [
        ['/nothing/here', 'not_found'],
        [`/remotes/${UNKNOWN}`, 'session_not_found'],
        [`/uploads/${UNKNOWN}`, 'not_found'],
        ['/jobs/1', 'not_found'],
      ] as const)
        expectError(await ask('GET', path), 404, { code });
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
    at('413 beyond 1 MiB of JSON; parameters and bookmarks take 16 MiB'),
    'POST /projects, PUT /models/{mid}/parameters/{aid}, POST /projects/{pid}/bookmarks',
    async ({ ask, make, world }) => {
      const json = { name: 'p', description: 'x'.repeat(1 << 20) };
      expectError(await ask('POST', '/projects', { json }), 413, { code: 'payload_too_large' });
      const { pid, mid } = await make.projectWithModel();
      const parameter = `/models/${mid}/parameters/${world.name('big')}`;
      const bookmarks = `/projects/${pid}/bookmarks`;
      // The body is `{"value":"…"}`, of so many bytes.
      const value = (bytes: number) => ({ json: { value: 'x'.repeat(bytes - 12) } });
      for (const [method, path] of [
        ['PUT', parameter],
        ['POST', bookmarks],
      ] as const) {
        const taken = await ask(method, path, value(16 << 20));
        expectAnswer(taken, method === 'PUT' ? 200 : 201);
        const refused = await ask(method, path, value((16 << 20) + 1));
        expectError(refused, 413, { code: 'payload_too_large' });
        await make.call('DELETE', method === 'PUT' ? path : `/bookmarks/${taken.json().id}`);
      }
    },
  ),
  row(
    at('a part has 5 GiB at most'),
    'PUT /uploads/{uid}/files/{fid}/parts/{part}',
    async ({ ask, make }) => {
      const path = `/uploads/${await make.newUpload()}/files/0/parts/0`;
      const type = { 'Content-Type': 'application/octet-stream' };
      const headers = { ...type, 'Content-Length': String(5 * 2 ** 30 + 1) };
      const refused = await ask('PUT', path, { headers });
      expectError(refused, 413, { code: 'payload_too_large' });
    },
  ),
  row(at('414 and 431 for an address or headers too long'), 'GET /jobs', async ({ ask }) => {
    const long = await ask('GET', `/jobs?after=${'x'.repeat(9_000)}`);
    expectError(long, 414, { code: 'address_too_long' });
    const headers = { 'X-Long': 'x'.repeat(40_000) };
    const answer = await ask('GET', '/jobs', { headers });
    expectError(answer, 431, { code: 'headers_too_large' });
  }),
  row(
    at('415 for what is not JSON'),
    'POST /projects, PUT /models/{mid}/parameters/{aid}, POST /projects/{pid}/bookmarks',
    async ({ ask, make }) => {
      const { pid, mid } = await make.projectWithModel();
      for (const [method, path] of [
        ['POST', '/projects'],
        ['PUT', `/models/${mid}/parameters/p`],
        ['POST', `/projects/${pid}/bookmarks`],
      ] as const) {
        const headers = { 'Content-Type': 'text/plain' };
        const answer = await ask(method, path, { body: '{"name":"p"}', headers });
        expectError(answer, 415, { code: 'unsupported_media_type' });
      }
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
    },
  ),
  row(
    at('never a 500 for bad input: JSON is UTF-8, at most 100 deep, whole'),
    'POST /projects, POST /projects/{pid}/bookmarks',
    async ({ ask, make }) => {
      const deep = `${'['.repeat(101)}${']'.repeat(101)}`;
      for (const body of ['{', '', deep, new Uint8Array([0x22, 0xff, 0x22]), '{"name":"\\u0000"}'])
        expectError(await ask('POST', '/projects', { body, headers: JSON_TYPE }), 400, {
          code: 'invalid_input',
        });
      for (const path of ['/jobs/%FF', '/projects/%zz'])
        expectError(await ask('GET', path), 400, { code: 'bad_request' });
      const bookmarks = `/projects/${await make.newProject()}/bookmarks`;
      const nested = (depth: number) => ({
        body: `{"a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`,
        headers: JSON_TYPE,
      });
      expectAnswer(await ask('POST', bookmarks, nested(100)), 201);
      expectError(await ask('POST', bookmarks, nested(101)), 400, { code: 'invalid_input' });
    },
  ),
  row(
    at('times are ISO 8601 in UTC'),
    'GET /users/-, GET /projects/{pid}, GET /models/{mid}, GET /uploads/{uid}, GET /jobs/{id}',
    async ({ ask, make, world }) => {
      // Of whatever else is asked for, tools.ts looks at the times.
      const { pid, mid } = await make.projectWithModel();
      const { id, uid } = await make.parse(world.name('timed'), 'x', 'blob');
      for (const [path, names] of [
        ['/users/-', ['created']],
        [`/projects/${pid}`, ['created', 'updated']],
        [`/models/${mid}`, ['created', 'updated']],
        [`/uploads/${uid}`, ['created']],
        [`/jobs/${id}`, ['created', 'started', 'finished']],
      ] as const) {
        const record = (await ask('GET', path)).json();
        for (const name of names)
          expect([path, name, record[name]]).toEqual([
            path,
            name,
            expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
          ]);
      }
    },
  ),
  row(
    at('PUT answers 200 and takes part of a record, DELETE 204'),
    'PUT /projects/{pid}, DELETE /projects/{pid}',
    async tools => {
      const path = await newProject(tools);
      const { name } = (await tools.make.call('GET', path)).json();
      const changed = await tools.ask('PUT', path, { json: { description: 'd' } });
      expectAnswer(changed, 200);
      expect(changed.json()).toMatchObject({ name, description: 'd' });
      expectAnswer(await tools.ask('DELETE', path), 204, { reason: 'Project deleted.' });
    },
  ),
  row('Running it: when it can serve, GET /readyz answers 200', 'GET /readyz', async ({ ask }) => {
    const answer = await ask('GET', '/readyz', { as: null });
    expectAnswer(answer, 200);
    expect(answer.json()).toMatchObject({ ready: true });
  }),
];
