import { expect } from 'vitest';
import { type Row, row } from '../row.ts';
import { expectAnswer, expectError, type Tools } from '../tools.ts';

const BOOKMARK = '{ "camera": [0, 12.50, -0], "b": 1e400, "a": "\\u0041" }';

const idOf = async (answer: ReturnType<Tools['ask']>) => {
  const { id } = (await answer).json<{ id: string }>();
  expect(id).toMatch(/^\w+$/);
  return id;
};

/** Ids of resources, and the fields of their records. */
export const RESOURCES: Row[] = [
  row(
    'sid: a string, unique; may or may not run an agent',
    'POST /remotes, GET /remotes/{sid}',
    async ({ ask, world, make }) => {
      const seen = new Set<unknown>();
      for (const agent of [true, false]) {
        const opened = await ask('POST', '/remotes', { json: { ...world.host, agent } });
        expectAnswer(opened, 200);
        const { sid } = opened.json();
        expect(sid).toEqual(expect.stringMatching(/./));
        seen.add(sid);
        expect((await ask('GET', `/remotes/${sid}`)).json()).toMatchObject({ sid, agent });
        await make.call('DELETE', `/remotes/${sid}`);
      }
      expect(seen.size).toBe(2);
    },
    'host',
  ),
  row(
    'vsid: a string, unique; from POST /remotes/(sid)/videos',
    'POST /remotes/{sid}/videos',
    async ({ ask, make }) => {
      const sid = await make.session();
      const json = { 'content-type': 'video/mp4', images: await make.frames() };
      const seen = new Set<unknown>();
      for (let i = 0; i < 2; i++) {
        const started = await ask('POST', `/remotes/${sid}/videos`, { json });
        expectAnswer(started, 202);
        const { vsid } = started.json();
        expect(vsid).toEqual(expect.stringMatching(/./));
        seen.add(vsid);
      }
      expect(seen.size).toBe(2);
    },
    'host',
  ),
  row(
    'pid, mid, bid, uid: strings, each unique within its kind',
    'POST /projects, POST /projects/{pid}/models, POST /projects/{pid}/bookmarks, POST /uploads',
    async ({ ask, make }) => {
      const { pid, mid } = await make.projectWithModel();
      const makers: [string, (n: number) => object][] = [
        ['/projects', () => ({ name: 'p' })],
        [`/projects/${pid}/models`, () => ({ 'model-type': 'any', name: 'm' })],
        [`/projects/${pid}/bookmarks`, n => ({ n })],
        ['/uploads', n => ({ mid, input: true, parser: 'blob', aids: [`u${n}`] })],
      ];
      for (const [path, body] of makers) {
        const ids = [1, 2].map(n => idOf(ask('POST', path, { json: body(n) })));
        const [first, second] = await Promise.all(ids);
        expect(first).not.toBe(second);
        const gone = path === '/projects' ? [first, second] : [];
        for (const id of gone) await make.call('DELETE', `/projects/${id}`);
      }
    },
  ),
  row(
    'aid: of a parameter its name',
    'PUT /models/{mid}/parameters/{aid}, GET /models/{mid}',
    async ({ ask, make, world }) => {
      const mid = await make.newModel((await make.projectWithModel()).pid);
      const aid = world.name('a b/ö');
      const json = { value: 1 };
      const path = `/models/${mid}/parameters/${encodeURIComponent(aid)}`;
      expectAnswer(await ask('PUT', path, { json }), 200);
      const { artifacts } = (await ask('GET', `/models/${mid}`)).json();
      expect(artifacts).toMatchObject([{ aid, type: 'parameter' }]);
    },
  ),
  row(
    'event: path-like, chosen by the client, with a query string or not',
    'POST /events/{event}',
    async ({ ask }) => {
      for (const event of ['select', 'a/b//c?x=1&x=2', 'zoom?'])
        expectAnswer(await ask('POST', `/events/${event}`), 204);
    },
  ),
  row(
    'key: a cached object in a project cache',
    'GET /projects/{pid}/cache/{key}, GET /projects/{pid}/cache',
    async ({ ask, make, world }) => {
      const { pid } = await make.projectWithModel();
      const key = world.name('film');
      const { path } = await make.video();
      await make.call('GET', `${path}?cache=project&project=${pid}&key=${key}`);
      expectAnswer(await ask('GET', `/projects/${pid}/cache/${key}`), 200, { type: 'video/mp4' });
      const { items } = (await ask('GET', `/projects/${pid}/cache?limit=1000`)).json();
      expect(items).toContainEqual(expect.objectContaining({ key, type: 'video/mp4' }));
      await make.call('DELETE', `/projects/${pid}/cache/${key}`);
    },
    'host',
  ),
  row(
    'Model parameter, value: any JSON expression, required',
    'PUT /models/{mid}/parameters/{aid}, GET /models/{mid}/parameters/{aid}',
    async ({ ask, make, world }) => {
      const { mid } = await make.projectWithModel();
      const path = `/models/${mid}/parameters/${world.name('p')}`;
      for (const value of [null, 0, 'text', false, [1, { a: [] }], { deep: { er: [null] } }]) {
        expectAnswer(await ask('PUT', path, { json: { value } }), 200);
        expectAnswer(await ask('GET', path), 200, { json: value, type: 'application/json' });
      }
      const none = await ask('PUT', path, { json: { input: true } });
      expect(expectError(none, 400, { code: 'invalid_input' }).detail).toContain('value');
    },
  ),
  row(
    'Model parameter, input: boolean, optional; true when it is a model input',
    'PUT /models/{mid}/parameters/{aid}, GET /models/{mid}',
    async ({ ask, make }) => {
      const mid = await make.newModel((await make.projectWithModel()).pid);
      for (const input of [true, false, undefined]) {
        const put = await ask('PUT', `/models/${mid}/parameters/p`, { json: { value: 1, input } });
        expectAnswer(put, 200);
        const { artifacts } = (await ask('GET', `/models/${mid}`)).json();
        expect(artifacts).toMatchObject([{ aid: 'p', input: input ?? false }]);
      }
      const json = { value: 1, input: 'yes' };
      const refused = await ask('PUT', `/models/${mid}/parameters/p`, { json });
      expect(expectError(refused, 400, { code: 'invalid_input' }).detail).toContain('input');
    },
  ),
  row(
    'Bookmark: an arbitrary JSON object, returned as stored',
    'POST /projects/{pid}/bookmarks, GET /bookmarks/{bid}',
    async ({ ask, make }) => {
      const { pid } = await make.projectWithModel();
      const headers = { 'Content-Type': 'application/json' };
      const path = `/projects/${pid}/bookmarks`;
      const bid = await idOf(ask('POST', path, { body: BOOKMARK, headers }));
      expect((await ask('GET', `/bookmarks/${bid}`)).text).toBe(BOOKMARK);
      for (const body of ['[]', '"text"', 'null', '1'])
        expectError(await ask('POST', path, { body, headers }), 400, { code: 'invalid_input' });
    },
  ),
  row(
    'Video status record: ok, ready, message of a video that is ready',
    'GET /remotes/{sid}/videos/{vsid}/status',
    async ({ ask, make }) => {
      const { path } = await make.video();
      const status = (await ask('GET', `${path}/status`)).json();
      expect(status).toEqual({
        ok: true,
        ready: true,
        phase: 'ready',
        message: expect.stringMatching(/./),
        progress: 1,
      });
    },
    'host',
  ),
  row(
    'Video status record: returncode a number, stderr a string, for debugging',
    'GET /remotes/{sid}/videos/{vsid}/status',
    async ({ ask, make }) => {
      // Half a picture: its size can be read, so that the encoder is started, and fails.
      const folder = await make.folder();
      const [frame = ''] = await make.frames();
      const half = `${folder}/half.png`;
      await make.run(`head -c $(($(wc -c < '${frame}') / 2)) '${frame}' > ${half}`);
      const { path, vsid } = await make.newVideo({ images: [half], encode: 'host' });
      await make.ended(vsid);
      expect((await ask('GET', `${path}/status`)).json()).toEqual({
        ok: false,
        ready: false,
        phase: 'failed',
        message: expect.stringMatching(/./),
        returncode: expect.any(Number),
        stderr: expect.stringMatching(/./),
      });
    },
    'host',
  ),
  row(
    'Command result record: command, output, errors (empty when there are none)',
    'POST /remotes/launch',
    async ({ ask, make }) => {
      const sid = await make.session();
      for (const [command, output, errors] of [
        ['echo out', 'out\n', ''],
        ['echo err >&2', '', 'err\n'],
      ])
        expect((await ask('POST', '/remotes/launch', { json: { sid, command } })).json()).toEqual({
          command,
          output,
          errors,
          returncode: 0,
          job: expect.stringMatching(/./),
        });
    },
    'host',
  ),
  row(
    'Upload accounting: uploaded, the number of parts of each file; missing, a tuple for each part',
    'POST /uploads/{uid}/finished',
    async ({ ask, make }) => {
      const uid = await make.newUpload(['u1', 'u2']);
      await make.putPart(uid, [0, 1], 'x');
      const json = { uploaded: [2, 3] };
      const refused = await ask('POST', `/uploads/${uid}/finished`, { json });
      expectError(refused, 400, { title: 'Upload incomplete', reason: 'Upload incomplete' });
      expect(refused.json().missing).toEqual([
        [0, 0],
        [1, 0],
        [1, 1],
        [1, 2],
      ]);
    },
  ),
];
