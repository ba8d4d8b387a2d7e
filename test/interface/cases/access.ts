import { expect } from 'vitest';
import { type Row, row } from '../row.ts';
import type { Credentials } from '../send.ts';
import { expectAnswer, expectError, type Tools } from '../tools.ts';

const at = (words: string) => `Everywhere, access: ${words}`;
const NOT_FOUND = { code: 'not_found' };
const FORBIDDEN = { code: 'forbidden' };
const TIME = /^\d{4}-.*Z$/;

async function people({ make }: Tools) {
  const model = await make.sharedProject();
  const [writer, reader, stranger] = await Promise.all(
    (['writer', 'reader', 'stranger'] as const).map(which => make.person(which)),
  );
  return { ...model, writer, reader, stranger } as typeof model &
    Record<'writer' | 'reader' | 'stranger', Credentials>;
}

/** Who may what in projects, sessions, jobs and uploads. */
export const ACCESS: Row[] = [
  row(
    at('a project has administrators, writers and readers: acl'),
    'GET /projects/{pid}',
    async tools => {
      const { pid, writer, reader } = await people(tools);
      expect((await tools.ask('GET', `/projects/${pid}`)).json().acl).toEqual({
        administrators: [{ user: tools.world.user.username }],
        writers: [{ user: writer.username }],
        readers: [{ user: reader.username }],
      });
    },
  ),
  row(
    at('models, artifacts, cache and bookmarks follow it'),
    'GET /models/{mid}, GET /models/{mid}/parameters/{aid}, GET /projects/{pid}/cache, GET /bookmarks/{bid}',
    async tools => {
      const { pid, mid, reader, stranger } = await people(tools);
      const { ask, make } = tools;
      await make.call('PUT', `/models/${mid}/parameters/p`, { json: { value: 1 } });
      const json = { b: 1 };
      const { id } = (await make.call('POST', `/projects/${pid}/bookmarks`, { json })).json();
      for (const path of [
        `/projects/${pid}`,
        `/projects/${pid}/models`,
        `/models/${mid}`,
        `/models/${mid}/parameters/p`,
        `/projects/${pid}/cache`,
        `/bookmarks/${id}`,
      ]) {
        expectAnswer(await ask('GET', path, { as: reader }), 200);
        expectError(await ask('GET', path, { as: stranger }), 404, NOT_FOUND);
      }
    },
  ),
  row(
    at('what one may read but not change is 403'),
    'PUT /projects/{pid}, DELETE /projects/{pid}, PUT /models/{mid}, DELETE /models/{mid}, PUT /models/{mid}/parameters/{aid}, DELETE /models/{mid}/parameters/{aid}, POST /projects/{pid}/models, POST /projects/{pid}/bookmarks, DELETE /projects/{pid}/cache/{key}, POST /uploads',
    async tools => {
      const { pid, mid, reader } = await people(tools);
      const upload = { mid, input: true, parser: 'blob', aids: ['a'] };
      for (const [method, path, json] of [
        ['PUT', `/projects/${pid}`, { name: 'n' }],
        ['DELETE', `/projects/${pid}`, undefined],
        ['PUT', `/models/${mid}`, { name: 'n' }],
        ['PUT', `/models/${mid}/parameters/p`, { value: 1 }],
        ['DELETE', `/models/${mid}/parameters/p`, undefined],
        ['DELETE', `/models/${mid}`, undefined],
        ['POST', `/projects/${pid}/models`, { 'model-type': 'any', name: 'm' }],
        ['POST', `/projects/${pid}/bookmarks`, {}],
        ['DELETE', `/projects/${pid}/cache/k`, undefined],
        ['POST', '/uploads', upload],
      ] as const)
        expectError(await tools.ask(method, path, { as: reader, json }), 403, FORBIDDEN);
    },
  ),
  row(
    at("writers may change a project's name and description, its administrators all of it"),
    'PUT /projects/{pid}, GET /projects/{pid}, DELETE /projects/{pid}',
    async tools => {
      const { pid, writer } = await people(tools);
      const path = `/projects/${pid}`;
      const as = writer;
      const json = { description: 'of the writer' };
      expectAnswer(await tools.ask('PUT', path, { as, json }), 200);
      const acl = { acl: { readers: [] } };
      expectError(await tools.ask('PUT', path, { as, json: acl }), 403, FORBIDDEN);
      expectError(await tools.ask('DELETE', path, { as }), 403, FORBIDDEN);
      const owned = `/projects/${await tools.make.newProject()}`;
      const list = { writers: [{ user: writer.username }] };
      expectAnswer(await tools.ask('PUT', owned, { json: { name: 'n', acl: list } }), 200);
      const now = (await tools.ask('GET', owned)).json();
      expect(now).toMatchObject({ name: 'n', acl: { ...list, readers: [] } });
      expectAnswer(await tools.ask('DELETE', owned), 204, { reason: 'Project deleted.' });
    },
  ),
  row(
    at('being server administrator opens no project'),
    'GET /projects/{pid}, PUT /projects/{pid}, DELETE /projects/{pid}, POST /projects',
    async ({ ask, make, world }) => {
      const as = await make.person('stranger');
      const made = await ask('POST', '/projects', { as, json: { name: world.name('own') } });
      expectAnswer(made, 201);
      const { id } = made.json();
      const path = `/projects/${id}`;
      for (const [method, json] of [
        ['GET', undefined],
        ['PUT', { name: 'n' }],
        ['DELETE', undefined],
      ] as const)
        expectError(await ask(method, path, { json }), 404, NOT_FOUND);
      await make.call('DELETE', path, { as });
    },
  ),
  row(
    at('remote and upload sessions belong to the user who made them'),
    'GET /uploads/{uid}, GET /uploads, DELETE /uploads/{uid}, POST /uploads/{uid}/finished, PUT /uploads/{uid}/files/{fid}/parts/{part}',
    async tools => {
      const { ask, make } = tools;
      const { mid, writer: as } = await people(tools);
      // Into a model that the other may write, too.
      const upload = { mid, input: true, parser: 'blob', aids: ['a'] };
      const { id } = (await make.call('POST', '/uploads', { json: upload })).json();
      const path = `/uploads/${id}`;
      for (const [method, where, json] of [
        ['GET', path, undefined],
        ['DELETE', path, undefined],
        ['PUT', `${path}/files/0/parts/0`, { sid: '0', path: '/f' }],
        ['POST', `${path}/finished`, { uploaded: [1] }],
      ] as const)
        expectError(await ask(method, where, { as, json }), 404, NOT_FOUND);
      expect((await ask('GET', '/uploads', { as })).json()).toEqual({ items: [], next: null });
      await make.call('DELETE', path);
    },
  ),
  row(
    at("a remote session is its owner's alone, 404 to others"),
    'GET /remotes/{sid}, GET /remotes, DELETE /remotes/{sid}, POST /remotes/launch, POST /remotes/{sid}/browse/{path}, GET /remotes/{sid}/file/{path}, POST /remotes/{sid}/videos',
    async ({ ask, make }) => {
      const as = await make.person('stranger');
      const sid = await make.session();
      const code = 'session_not_found';
      const json = { sid, command: 'true' };
      for (const [method, path, body] of [
        ['GET', `/remotes/${sid}`, undefined],
        ['DELETE', `/remotes/${sid}`, undefined],
        ['POST', '/remotes/launch', json],
        ['POST', `/remotes/${sid}/browse/tmp`, undefined],
        ['GET', `/remotes/${sid}/file/etc/hosts`, undefined],
        ['POST', `/remotes/${sid}/videos`, {}],
      ] as const)
        expectError(await ask(method, path, { as, json: body }), 404, { code });
      expect((await ask('GET', '/remotes', { as })).json()).toEqual({ items: [], next: null });
    },
    'host',
  ),
  row(
    at("a job is its owner's alone: 404 to others"),
    'GET /jobs/{id}, GET /jobs/{id}/output, GET /jobs/{id}/events, DELETE /jobs/{id}',
    async ({ ask, make, world }) => {
      const as = await make.person('stranger');
      const { id } = await make.parse(world.name('mine'), 'x', 'blob');
      for (const path of [`/jobs/${id}`, `/jobs/${id}/output`, `/jobs/${id}/events`])
        expectError(await ask('GET', path, { as }), 404, NOT_FOUND);
      expectError(await ask('DELETE', `/jobs/${id}`, { as }), 404, NOT_FOUND);
    },
  ),
  row(
    at(
      'a server administrator sees of it kind, state, times and host, never command, payload or output',
    ),
    'GET /jobs/{id}, GET /jobs/{id}/output, GET /jobs/{id}/events, GET /jobs/{id}/result, POST /jobs/{id}/retry, GET /jobs',
    async ({ ask, poll, make, world }) => {
      const as = await make.person('stranger');
      const json = { name: world.name('theirs') };
      const { id: pid } = (await make.call('POST', '/projects', { as, json })).json();
      const model = { 'model-type': 'any', name: 'm' };
      const { id: mid } = (
        await make.call('POST', `/projects/${pid}/models`, { as, json: model })
      ).json();
      const upload = { mid, input: true, parser: 'blob', aids: ['a'] };
      const { id: uid } = (await make.call('POST', '/uploads', { as, json: upload })).json();
      const headers = { 'Content-Type': 'application/octet-stream' };
      await make.call('PUT', `/uploads/${uid}/files/0/parts/0`, { as, headers, body: 'x' });
      const finished = await make.call('POST', `/uploads/${uid}/finished`, {
        as,
        json: { uploaded: [1] },
      });
      const { job } = finished.json();
      await poll(`/jobs/${job}`, answer => answer.json().finished !== null);
      // No more than this. `host` is that of a session; where a parse runs, the worker's name says.
      expect((await ask('GET', `/jobs/${job}`)).json()).toEqual({
        id: job,
        kind: 'parse',
        state: 'succeeded',
        created: expect.stringMatching(TIME),
        started: expect.stringMatching(TIME),
        finished: expect.stringMatching(TIME),
        worker: expect.stringMatching(/./),
        owner: as.username,
        progress: expect.toBeOneOf([null, expect.any(Number)]),
        host: null,
        error: null,
      });
      for (const hidden of ['output', 'events', 'result'])
        expectError(await ask('GET', `/jobs/${job}/${hidden}`), 404, NOT_FOUND);
      expectError(await ask('POST', `/jobs/${job}/retry`), 404, NOT_FOUND);
      const { items } = (await ask('GET', '/jobs?limit=1000')).json<{ items: { id: string }[] }>();
      expect(items.map(({ id }) => id)).not.toContain(job);
      await make.call('DELETE', `/projects/${pid}`, { as });
    },
  ),
  row(
    at("a server administrator may cancel another's job"),
    'DELETE /jobs/{id}',
    async ({ ask, make, world, ended }) => {
      const as = await make.newUser();
      const opened = await make.call('POST', '/remotes', { as, json: { ...world.host } });
      const json = { sid: opened.json().sid, command: 'exec sleep 600' };
      const headers = { Prefer: 'respond-async' };
      const { id } = (await make.call('POST', '/remotes/launch', { as, json, headers })).json();
      expectAnswer(await ask('DELETE', `/jobs/${id}`), 202);
      expect(await ended(String(id))).toMatchObject({ state: 'cancelled', owner: as.username });
    },
    'host',
  ),
  row(
    at('who can read a model sees the state and error of its parses'),
    'GET /models/{mid}',
    async tools => {
      const { mid, reader } = await people(tools);
      const { ask, make, ended, world } = tools;
      const json = { mid, input: true, parser: 'csv', aids: [world.name('bad')] };
      const { id: uid } = (await make.call('POST', '/uploads', { json })).json();
      await make.putPart(String(uid), [0, 0], 'a,b\n1,2\n3\n4,5,6\n');
      const { job } = (
        await make.call('POST', `/uploads/${uid}/finished`, { json: { uploaded: [1] } })
      ).json();
      await ended(String(job));
      const { parses } = (await ask('GET', `/models/${mid}`, { as: reader })).json();
      expect(parses).toContainEqual({
        aids: json.aids,
        parser: 'csv',
        state: 'failed',
        error: {
          message: expect.stringMatching(/./),
          errors: [3, 4].map(line => ({ file: 0, row: line, reason: expect.stringMatching(/./) })),
        },
        finished: expect.stringMatching(TIME),
      });
    },
  ),
];
