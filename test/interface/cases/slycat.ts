import { createHash } from 'node:crypto';
import { expect } from 'vitest';
import { tusMetadata } from '../../harness/clients/tus.ts';
import { type Row, row } from '../row.ts';
import { expectAnswer, expectError } from '../tools.ts';

const at = (words: string) => `the client of Slycat: ${words}`;
const base64 = (text: string) => Buffer.from(text).toString('base64');
const PART = 'PUT /uploads/{uid}/files/{fid}/parts/{part}';

/** What the client of Slycat needs beside the rest: docs/slycat.md. */
export const SLYCAT: Row[] = [
  row(
    at('"agent": null is as if absent'),
    'POST /remotes',
    async ({ ask, make, world }) => {
      const opened = await ask('POST', '/remotes', { json: { ...world.host, agent: null } });
      expectAnswer(opened, 200, { json: { sid: expect.any(String) } });
      await make.call('DELETE', `/remotes/${opened.json().sid}`);
    },
    'host',
  ),
  row(
    at('every answer to a write carries a Content-Type, 204 too; JSON keeps its own'),
    `PUT /projects/{pid}, PUT /models/{mid}/parameters/{aid}, DELETE /models/{mid}, POST /events/{event}, ${PART}`,
    async ({ ask, make }) => {
      const pid = await make.newProject();
      const mid = await make.newModel(pid);
      const kept = await ask('PUT', `/models/${mid}/parameters/a`, { json: { value: 1 } });
      const part = await ask('PUT', `/uploads/${await make.newUpload()}/files/0/parts/0`, {
        body: 'bytes',
        headers: { 'Content-Type': 'application/octet-stream' },
      });
      for (const empty of [kept, part]) expectAnswer(empty, 200, { type: 'text/plain' });
      const renamed = await ask('PUT', `/projects/${pid}`, { json: { description: 'new' } });
      expectAnswer(renamed, 200, { type: 'application/json' });
      const logged = await ask('POST', '/events/a');
      const removed = await ask('DELETE', `/models/${mid}`);
      for (const { status, type } of [logged, removed])
        expect([status, type]).toEqual([204, 'text/plain']);
    },
  ),
  row(at('304 carries no Content-Type'), 'GET /projects/{pid}', async ({ ask, make }) => {
    const { pid } = await make.projectWithModel();
    const tag = (await ask('GET', `/projects/${pid}`)).headers.etag ?? '';
    const headers = { 'If-None-Match': tag };
    const same = await ask('GET', `/projects/${pid}`, { headers });
    expect([same.status, same.type]).toEqual([304, '']);
  }),
  row(
    at('POST /login takes user_name and password in base64; the field name decides'),
    'POST /login',
    async ({ ask, world }) => {
      const { username, password } = world.user;
      const json = { user_name: base64(username), password: base64(password) };
      const entered = await ask('POST', '/login', { json, as: null });
      expectAnswer(entered, 200, { json: { success: true, target: expect.any(String) } });
      expect(entered.headers['set-cookie']).toHaveLength(2);
      const plain = { username, password: base64(password) };
      expectError(await ask('POST', '/login', { json: plain, as: null }), 401, {});
      for (const [field, wrong] of [
        ['user_name', { ...json, user_name: 'a b' }],
        ['user_name', { ...json, user_name: '/w==' }],
        ['password', { ...json, password: 'not base64' }],
        ['password', { user_name: json.user_name }],
        ['username', { ...json, username }],
      ] as const) {
        const refused = await ask('POST', '/login', { json: wrong, as: null });
        const { fields } = expectError(refused, 400, { code: 'invalid_input' });
        expect(fields?.map(one => one.field)).toEqual([field]);
      }
    },
  ),
  row(
    at('cache, project and key mean nothing for a file of a host: 400 names them'),
    'GET /remotes/{sid}/file/{path}',
    async ({ ask, make }) => {
      const sid = await make.session();
      const [frame] = await make.frames();
      const path = `/remotes/${sid}/file${encodeURI(frame ?? '')}`;
      const refused = await ask('GET', `${path}?cache=project&project=p&key=k`);
      const { fields } = expectError(refused, 400, { code: 'invalid_input' });
      expect(fields?.map(one => one.field)).toEqual(['cache', 'project', 'key']);
      expectAnswer(await ask('GET', `${path}?other=1`), 200);
    },
    'host',
  ),
  row(
    at('GET /configuration/version, remote-hosts, markings, support-email in its shapes'),
    'GET /configuration/version, GET /configuration/remote-hosts, GET /configuration/markings, GET /configuration/support-email',
    async ({ ask, world }) => {
      const version = await ask('GET', '/configuration/version');
      expectAnswer(version, 200, {
        json: { version: expect.stringMatching(/^\d+\.\d+\.\d+/), commit: null },
      });
      const hosts = await ask('GET', '/configuration/remote-hosts');
      expectAnswer(hosts, 200);
      const { hostname } = world.host ?? {};
      if (hostname) expect(hosts.json()).toContainEqual({ hostname, agent: true });
      const markings = await ask('GET', '/configuration/markings');
      expectAnswer(markings, 200, { json: expect.any(Array) });
      for (const marking of markings.json<object[]>())
        expect(marking).toEqual({ type: expect.any(String), label: expect.any(String) });
      const support = await ask('GET', '/configuration/support-email');
      expectAnswer(support, 200);
      expect(Object.keys(support.json())).toEqual(['address', 'subject']);
    },
  ),
  row(
    at('GET /projects_list {projects: [{_id, name, …}]}, the newest first; `_` is passed over'),
    'GET /projects_list',
    async ({ ask, make }) => {
      const made = [await make.newProject(), await make.newProject()];
      const listed = await ask('GET', '/projects_list?_=1');
      expectAnswer(listed, 200);
      const { projects } = listed.json<{ projects: { _id: string }[] }>();
      const mine = projects.filter(({ _id }) => made.includes(_id));
      expect(mine).toEqual(
        made.toReversed().map(id => ({
          _id: id,
          name: expect.stringMatching(/^project-/),
          description: '',
          role: 'administrator',
          created: expect.any(String),
          updated: expect.any(String),
        })),
      );
    },
  ),
  row(
    at('its names of parsers are the same parsers; what is stored and listed is our name'),
    'POST /uploads, POST /tus, GET /uploads/{uid}',
    async ({ ask, make, world }) => {
      const { mid } = await make.projectWithModel();
      const json = { mid, input: true, parser: 'slycat-csv-parser', aids: [world.name('a')] };
      const begun = await ask('POST', '/uploads', { json: { ...json, delimiter: ';' } });
      expectAnswer(begun, 201);
      const upload = await ask('GET', `/uploads/${begun.json().id}`);
      expect(upload.json()).toMatchObject({ parser: 'csv' });
      for (const parser of ['slycat-none-parser', 'slycat-csv', 'csv-parser', 'slycat--parser']) {
        const refused = await ask('POST', '/uploads', { json: { ...json, parser } });
        const { fields } = expectError(refused, 400, { code: 'invalid_input' });
        expect(fields?.map(one => one.field)).toEqual(['parser']);
      }
      const metadata = { mid, parser: 'slycat-csv-parser', aid: world.name('a'), header: 'true' };
      const headers = {
        'Tus-Resumable': '1.0.0',
        'Upload-Length': '1',
        'Upload-Metadata': tusMetadata(metadata),
      };
      const created = await ask('POST', '/tus', { headers });
      expectAnswer(created, 201);
      const uid = created.headers.location?.split('/').at(-1);
      expect((await ask('GET', `/uploads/${uid}`)).json()).toMatchObject({ parser: 'csv' });
    },
  ),
  row(
    at('a part comes as the field `file` of a form too: multipart, or urlencoded in base64'),
    `${PART}, GET /uploads/{uid}`,
    async ({ ask, make }) => {
      const uid = await make.newUpload();
      const content = Buffer.from(
        Array.from({ length: 100_000 }, (_, n) => (n * 7 + (n >> 8)) % 256),
      );
      const form = (fields: Record<string, string>) => ({
        body: new URLSearchParams(fields).toString(),
        headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
      });
      const path = `/uploads/${uid}/files/0/parts/0`;
      const file = content.toString('base64');
      expectAnswer(await ask('PUT', path, form({ file })), 200);
      const digest = createHash('sha256').update(content).digest('base64');
      const { parts } = (await ask('GET', `/uploads/${uid}`)).json<{ parts: object[] }>();
      expect(parts).toEqual([expect.objectContaining({ size: content.length, digest })]);
      for (const [field, wrong] of [
        ['file', { file: 'A' }],
        ['file', { file: '=' }],
        ['sid', { file, sid: 's' }],
        ['other', { other: '1' }],
        ['hostname', { hostname: 'h', path: '/p' }],
      ] as const) {
        const refused = expectError(await ask('PUT', path, form(wrong)), 400, {
          code: 'invalid_input',
        });
        expect(refused.fields?.map(one => one.field)).toEqual([field]);
      }
    },
  ),
  row(
    at('POST /uploads/(uid)/finished takes useProjectData: false, which means nothing'),
    'POST /uploads/{uid}/finished',
    async ({ ask, make }) => {
      const uid = await make.newUpload();
      await make.putPart(uid, [0, 0], 'bytes');
      const finish = (useProjectData: boolean) =>
        ask('POST', `/uploads/${uid}/finished`, { json: { uploaded: [1], useProjectData } });
      expectError(await finish(true), 400, { code: 'invalid_input' });
      expectAnswer(await finish(false), 202);
    },
  ),
];
