import { expect } from 'vitest';
import { HOST_KEY } from '../fixtures.ts';
import { type Row, row } from '../row.ts';
import { expectAnswer, expectError, type Tools } from '../tools.ts';

const at = (words: string) => `Everywhere: ${words}`;
const BYTES = { 'Content-Type': 'application/octet-stream' };

/** A record has an ETag: 304 without a body to who has it, all of it to who has another. */
async function holdTag(tools: Tools, path: string, tries = 5): Promise<void> {
  const { ask } = tools;
  const first = await ask('GET', path);
  expectAnswer(first, 200);
  const tag = first.headers.etag ?? '';
  expect([path, tag]).toEqual([path, expect.stringMatching(/^"[^"]+"$/)]);
  for (const known of [tag, `"other", W/${tag}`]) {
    const again = await ask('GET', path, { headers: { 'If-None-Match': known } });
    // Such as what a user stores: what other tests have left behind is removed meanwhile.
    const isOther = again.status === 200 && again.headers.etag !== tag;
    if (isOther && tries > 1) return holdTag(tools, path, tries - 1);
    expectAnswer(again, 304);
    expect([again.bytes.length, again.headers.etag]).toEqual([0, tag]);
  }
  expectAnswer(await ask('GET', path, { headers: { 'If-None-Match': '"other"' } }), 200);
}

interface Write {
  method: 'PUT' | 'DELETE';
  path: string;
  json?: unknown;
  /** Where the ETag is to be had, unless at `path`. */
  from?: string;
  reason?: string;
}

/** A write is refused to who saw another record, and changes nothing then; who saw this one may write. */
async function holdIfMatch({ ask }: Tools, write: Write): Promise<void> {
  const { method, path, json, from = path, reason } = write;
  const tag = (await ask('GET', from)).headers.etag ?? '';
  // A weak tag is never the same (RFC 9110, 13.1.1).
  for (const given of ['"stale"', `W/${tag}`]) {
    const refused = await ask(method, path, { headers: { 'If-Match': given }, json });
    expectError(refused, 412, { code: 'precondition_failed' });
  }
  expect((await ask('GET', from)).headers.etag).toBe(tag);
  const headers = { 'If-Match': `"stale", ${tag}` };
  expectAnswer(await ask(method, path, { headers, json }), method === 'PUT' ? 200 : 204, {
    reason,
  });
}

/** ETag, If-None-Match and If-Match on single records. */
export const CONDITIONS: Row[] = [
  row(
    at('ETag and If-None-Match on every GET of a record'),
    'GET /projects/{pid}, GET /models/{mid}, GET /models/{mid}/parameters/{aid}, GET /users/-, GET /uploads/{uid}, GET /jobs/{id}, GET /configuration/parsers',
    async tools => {
      const { make, ended } = tools;
      const { pid, mid } = await make.projectWithModel();
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
        '/users/-',
        `/uploads/${uid}`,
        `/jobs/${job}`,
        '/configuration/parsers',
      ])
        await holdTag(tools, path);
    },
  ),
  row(
    at('ETag and If-None-Match on tables and files'),
    'GET /models/{mid}/tables/{aid}/metadata, GET /models/{mid}/tables/{aid}/rows, GET /models/{mid}/tables/{aid}/histogram, GET /models/{mid}/tables/{aid}/data, GET /models/{mid}/files/{aid}',
    async tools => {
      const table = await tools.make.table();
      for (const part of ['metadata', 'rows', 'rows?sort=-n', 'histogram?column=n', 'data'])
        await holdTag(tools, `${table}/${part}`);
      await holdTag(tools, await tools.make.file());
    },
  ),
  row(
    at('ETag and If-None-Match on hosts and users'),
    'GET /hosts/{name}, GET /users/{username}',
    async tools => {
      const { make, world } = tools;
      const name = world.name('host');
      await make.call('POST', '/hosts', { json: { name, keys: [HOST_KEY] } });
      await holdTag(tools, `/hosts/${name}`);
      // A user of its own: what upkeep removes of another's would change the tag.
      const { username } = await make.newUser('tagged');
      await holdTag(tools, `/users/${username}`);
      await make.call('DELETE', `/hosts/${name}`);
    },
  ),
  row(
    at('ETag and If-None-Match on a session and what it made'),
    'GET /remotes/{sid}, GET /remotes/{sid}/videos/{vsid}/status, GET /remotes/{sid}/videos/{vsid}, GET /jobs/{id}/result, GET /projects/{pid}/cache/{key}',
    async tools => {
      const { make, world } = tools;
      const { pid } = await make.projectWithModel();
      const { sid, vsid, path } = await make.video();
      const key = world.name('tagged');
      await make.call('GET', `${path}?cache=project&project=${pid}&key=${key}`);
      for (const record of [
        `/remotes/${sid}`,
        `${path}/status`,
        path,
        `/jobs/${vsid}/result`,
        `/projects/${pid}/cache/${key}`,
      ])
        await holdTag(tools, record);
    },
    'host',
  ),
  row(
    at('bookmarks have no ETag: they are no-store'),
    'GET /bookmarks/{bid}',
    async ({ ask, make }) => {
      const { pid } = await make.projectWithModel();
      const made = await make.call('POST', `/projects/${pid}/bookmarks`, { json: { tag: 'none' } });
      const path = `/bookmarks/${made.json().id}`;
      const { headers } = await ask('GET', path);
      expect(headers).not.toHaveProperty('etag');
      expect(headers['cache-control']).toContain('no-store');
      expectAnswer(await ask('GET', path, { headers: { 'If-None-Match': '"any"' } }), 200);
    },
  ),
  row(
    at('If-Match on PUT and DELETE, 412: projects, models, parameters'),
    'PUT /projects/{pid}, DELETE /projects/{pid}, PUT /models/{mid}, DELETE /models/{mid}, PUT /models/{mid}/parameters/{aid}, DELETE /models/{mid}/parameters/{aid}',
    async tools => {
      const project = `/projects/${await tools.make.newProject()}`;
      const model = `/models/${await tools.make.newModel(project.replace('/projects/', ''))}`;
      const parameter = `${model}/parameters/p`;
      await tools.make.call('PUT', parameter, { json: { value: 1 } });
      await holdIfMatch(tools, { method: 'PUT', path: parameter, json: { value: 2 } });
      await holdIfMatch(tools, { method: 'DELETE', path: parameter });
      await holdIfMatch(tools, { method: 'PUT', path: model, json: { name: 'n' } });
      await holdIfMatch(tools, { method: 'DELETE', path: model });
      await holdIfMatch(tools, { method: 'PUT', path: project, json: { description: 'd' } });
      await holdIfMatch(tools, { method: 'DELETE', path: project, reason: 'Project deleted.' });
    },
  ),
  row(
    at('If-Match on PUT and DELETE, 412: uploads, jobs, files, tables'),
    'DELETE /uploads/{uid}, DELETE /jobs/{id}, DELETE /models/{mid}/files/{aid}, DELETE /models/{mid}/tables/{aid}',
    async tools => {
      const { ask, make, world } = tools;
      const upload = `/uploads/${await make.newUpload()}`;
      const reason = 'Upload session deleted.';
      await holdIfMatch(tools, { method: 'DELETE', path: upload, reason });
      const [file, table] = [world.name('file'), world.name('table')];
      const { id } = await make.parse(file, 'bytes', 'blob');
      await make.parse(table, 'n\n1\n', 'csv');
      const { mid } = await make.projectWithModel();
      await holdIfMatch(tools, { method: 'DELETE', path: `/models/${mid}/files/${file}` });
      const path = `/models/${mid}/tables/${table}`;
      await holdIfMatch(tools, { method: 'DELETE', path, from: `${path}/metadata` });
      const stale = await ask('DELETE', `/jobs/${id}`, { headers: { 'If-Match': '"stale"' } });
      expectError(stale, 412, { code: 'precondition_failed' });
      // The right one comes as far as the job's state.
      const headers = { 'If-Match': (await ask('GET', `/jobs/${id}`)).headers.etag ?? '' };
      expectError(await ask('DELETE', `/jobs/${id}`, { headers }), 409, { code: 'conflict' });
    },
  ),
  row(
    at('If-Match on PUT and DELETE, 412: a part of an upload'),
    'PUT /uploads/{uid}/files/{fid}/parts/{part}, GET /uploads/{uid}',
    async ({ ask, make }) => {
      const upload = `/uploads/${await make.newUpload()}`;
      const path = `${upload}/files/0/parts/0`;
      const put = (body: string, tag?: string) =>
        ask('PUT', path, { body, headers: { ...BYTES, ...(tag && { 'If-Match': tag }) } });
      const sizes = async () =>
        (await ask('GET', upload)).json<{ parts: { size: number }[] }>().parts.map(p => p.size);
      expectError(await put('no part yet', '*'), 412, { code: 'precondition_failed' });
      expect(await sizes()).toEqual([]);
      const first = await put('first');
      expectAnswer(first, 200);
      expectError(await put('stale', '"stale"'), 412, { code: 'precondition_failed' });
      expect(await sizes()).toEqual([5]);
      expectAnswer(await put('second', first.headers.etag), 200);
      expect(await sizes()).toEqual([6]);
      // It is another part now.
      expectError(await put('third', first.headers.etag), 412, { code: 'precondition_failed' });
      expectAnswer(await put('any', '*'), 200);
    },
  ),
  row(
    at('If-Match on PUT and DELETE, 412: hosts and users'),
    'PUT /hosts/{name}, DELETE /hosts/{name}, PUT /users/{username}, DELETE /users/{username}',
    async tools => {
      const { make, world } = tools;
      const user = `/users/${(await make.newUser()).username}`;
      const name = world.name('host');
      await make.call('POST', '/hosts', { json: { name, keys: [HOST_KEY] } });
      await holdIfMatch(tools, { method: 'PUT', path: `/hosts/${name}`, json: { agent: false } });
      await holdIfMatch(tools, { method: 'DELETE', path: `/hosts/${name}` });
      await holdIfMatch(tools, { method: 'PUT', path: user, json: { administrator: true } });
      await holdIfMatch(tools, { method: 'DELETE', path: user });
    },
  ),
  row(
    at('If-Match on DELETE of a session and of what it made'),
    'DELETE /remotes/{sid}, DELETE /projects/{pid}/cache/{key}',
    async tools => {
      const { make, world } = tools;
      const { pid } = await make.projectWithModel();
      const { path: video } = await make.video();
      const key = world.name('tagged');
      await make.call('GET', `${video}?cache=project&project=${pid}&key=${key}`);
      for (const [path, reason] of [
        [`/remotes/${await make.newSession(false)}`, 'Session deleted.'],
        [`/projects/${pid}/cache/${key}`, 'Cache object deleted.'],
      ] as const)
        await holdIfMatch(tools, { method: 'DELETE', path, reason });
    },
    'host',
  ),
  row(
    at('If-Match on DELETE of a bookmark, which has no ETag: 412 for anything but *'),
    'DELETE /bookmarks/{bid}',
    async ({ ask, make, world }) => {
      const { pid } = await make.projectWithModel();
      const json = { n: world.name('state') };
      const made = await make.call('POST', `/projects/${pid}/bookmarks`, { json });
      const path = `/bookmarks/${made.json().id}`;
      const refused = await ask('DELETE', path, { headers: { 'If-Match': '"any"' } });
      expectError(refused, 412, { code: 'precondition_failed' });
      await make.call('GET', path);
      expectAnswer(await ask('DELETE', path, { headers: { 'If-Match': '*' } }), 204);
    },
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
];
