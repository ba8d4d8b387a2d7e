import { expect } from 'vitest';
import { type Row, row } from '../row.ts';
import { expectAnswer, expectError } from '../tools.ts';

const FINISHED = 'POST /uploads/{uid}/finished';
const UNKNOWN = '00000000000000000000000000';

/** Answers and errors of parameters, projects, events, uploads and bookmarks. */
export const ENDPOINTS: Row[] = [
  row(
    'PUT of a parameter: 200 OK, empty body',
    'PUT /models/{mid}/parameters/{aid}',
    async ({ ask, make, world }) => {
      const { mid } = await make.projectWithModel();
      const json = { value: { any: ['thing'] }, input: true };
      const answer = await ask('PUT', `/models/${mid}/parameters/${world.name('p')}`, { json });
      expectAnswer(answer, 200, { reason: 'OK' });
      // Clients of Slycat look at the type of every answer.
      expect([answer.bytes.length, answer.type]).toEqual([0, 'text/plain']);
    },
  ),
  row(
    'PUT of a parameter: related: GET /models/(mid)/parameters/(aid)',
    'GET /models/{mid}/parameters/{aid}',
    async ({ ask, make, world }) => {
      const path = `/models/${(await make.projectWithModel()).mid}/parameters/${world.name('p')}`;
      await make.call('PUT', path, { json: { value: [1, 2] } });
      expectAnswer(await ask('GET', path), 200, { json: [1, 2] });
    },
  ),
  row(
    'DELETE of a project: 204 Project deleted.; the project, its models and artifacts are deleted',
    'DELETE /projects/{pid}, GET /projects/{pid}, GET /models/{mid}, GET /models/{mid}/parameters/{aid}',
    async ({ ask, make }) => {
      const pid = await make.newProject();
      const mid = await make.newModel(pid);
      await make.call('PUT', `/models/${mid}/parameters/p`, { json: { value: 1 } });
      const answer = await ask('DELETE', `/projects/${pid}`);
      expectAnswer(answer, 204, { reason: 'Project deleted.' });
      expect(answer.bytes).toHaveLength(0);
      for (const path of [`/projects/${pid}`, `/models/${mid}`, `/models/${mid}/parameters/p`])
        expectError(await ask('GET', path), 404, { code: 'not_found' });
    },
  ),
  row(
    'DELETE of a project: related: GET and PUT /projects/(pid)',
    'GET /projects/{pid}, PUT /projects/{pid}',
    async ({ ask, make }) => {
      const pid = await make.newProject();
      const json = { description: 'changed' };
      expectAnswer(await ask('PUT', `/projects/${pid}`, { json }), 200);
      expect((await ask('GET', `/projects/${pid}`)).json()).toMatchObject({ id: pid, ...json });
    },
  ),
  row(
    'an event: any path, segments and query; its body is ignored',
    'POST /events/{event}',
    async ({ ask, world }) => {
      const event = world.name('select');
      for (const [path, options] of [
        [`/events/${event}/model/7?x=1.5&y`, {}],
        [`/events/${event}`, { json: { any: 'thing' } }],
        [`/events/${event}`, { body: 'no { JSON', headers: { 'Content-Type': 'text/x' } }],
      ] as const)
        expectAnswer(await ask('POST', path, options), 204);
    },
  ),
  row(
    'an event: it is written to the server log',
    'POST /events/{event}',
    async ({ ask, world }) => {
      const event = world.name('zoom');
      await ask('POST', `/events/${event}/in?by=2`);
      await expect
        .poll(() => world.stack.log(), { timeout: 20_000 })
        .toMatch(new RegExp(`"path":"${event}/in","query":"by=2"`));
    },
  ),
  row(
    'finished: 202 all data validated; parsing begins',
    FINISHED,
    async ({ ask, make, ended }) => {
      const uid = await make.newUpload();
      await make.putPart(uid, [0, 0], 'one, ');
      await make.putPart(uid, [0, 1], 'two');
      const answer = await ask('POST', `/uploads/${uid}/finished`, { json: { uploaded: [2] } });
      expectAnswer(answer, 202, { type: 'application/json' });
      expect(answer.json()).toEqual({ missing: [], job: expect.stringMatching(/./) });
      expect(await ended(String(answer.json().job))).toMatchObject({ state: 'succeeded' });
    },
  ),
  row(
    'finished: 400 Upload incomplete; parsing begins when the missing parts came and it is called again',
    FINISHED,
    async ({ ask, make }) => {
      const uid = await make.newUpload();
      await make.putPart(uid, [0, 0], 'a');
      const finish = () => ask('POST', `/uploads/${uid}/finished`, { json: { uploaded: [2] } });
      const refused = await finish();
      expectError(refused, 400, { title: 'Upload incomplete', reason: 'Upload incomplete' });
      expect([refused.type, refused.json().missing]).toEqual(['application/json', [[0, 1]]]);
      expect((await make.call('GET', `/uploads/${uid}`)).json().state).toBe('open');
      await make.putPart(uid, [0, 1], 'b');
      expectAnswer(await finish(), 202);
    },
  ),
  row(
    'finished: 400 Client confused; parsing begins when it is called again with correct counts',
    FINISHED,
    async ({ ask, make }) => {
      const uid = await make.newUpload();
      for (const pid of [0, 1]) await make.putPart(uid, [0, pid], 'a');
      const finish = (n: number) =>
        ask('POST', `/uploads/${uid}/finished`, { json: { uploaded: [n] } });
      const refused = await finish(1);
      expectError(refused, 400, { title: 'Client confused', reason: 'Client confused' });
      expect([refused.type, refused.json().excess]).toEqual(['application/json', [[0, 1]]]);
      expect((await make.call('GET', `/uploads/${uid}`)).json().state).toBe('open');
      expectAnswer(await finish(2), 202);
    },
  ),
  row(
    'a bookmark: 200: a JSON object, application/json, not to be cached',
    'GET /bookmarks/{bid}',
    async ({ ask, make }) => {
      const { pid } = await make.projectWithModel();
      const json = { state: 1 };
      const { id } = (await make.call('POST', `/projects/${pid}/bookmarks`, { json })).json();
      const answer = await ask('GET', `/bookmarks/${id}`);
      expectAnswer(answer, 200, { json, type: 'application/json' });
      expect(answer.headers).toMatchObject({
        'cache-control': 'no-cache, no-store, must-revalidate',
        pragma: 'no-cache',
        expires: '0',
      });
    },
  ),
  row(
    'referenced operations exist',
    'POST /remotes, POST /remotes/{sid}/videos, GET /projects/{pid}/cache/{key}, GET /models/{mid}/parameters/{aid}, GET /projects/{pid}, PUT /projects/{pid}',
    async ({ ask, make }) => {
      // None of these is what a path that does not exist answers.
      const opened = await ask('POST', '/remotes', { json: { wrong: 1 } });
      expectError(opened, 400, { code: 'invalid_input' });
      const started = await ask('POST', `/remotes/${UNKNOWN}/videos`, { json: {} });
      expectError(started, 404, { code: 'session_not_found' });
      const { pid, mid } = await make.projectWithModel();
      const cached = expectError(await ask('GET', `/projects/${pid}/cache/none`), 404, {
        code: 'not_found',
      });
      expect(cached.detail).toMatch(/cache/);
      const parameter = `/models/${mid}/parameters/referenced`;
      await make.call('PUT', parameter, { json: { value: 7 } });
      expectAnswer(await ask('GET', parameter), 200, { json: 7 });
      expectAnswer(await ask('GET', `/projects/${pid}`), 200, { type: 'application/json' });
      const wrong = await ask('PUT', `/projects/${pid}`, { json: { wrong: 1 } });
      expectError(wrong, 400, { code: 'invalid_input' });
    },
  ),
  row(
    'X-Service-Message on launch errors; unknown ids of the other operations are 404',
    'POST /remotes/launch, DELETE /remotes/{sid}, PUT /models/{mid}/parameters/{aid}, DELETE /projects/{pid}, GET /bookmarks/{bid}, POST /uploads/{uid}/finished',
    async ({ ask }) => {
      const launch = { sid: UNKNOWN, command: 'true' };
      for (const [method, path, json] of [
        ['POST', '/remotes/launch', launch],
        ['DELETE', `/remotes/${UNKNOWN}`, undefined],
        ['PUT', `/models/${UNKNOWN}/parameters/p`, { value: 1 }],
        ['DELETE', `/projects/${UNKNOWN}`, undefined],
        ['GET', `/bookmarks/${UNKNOWN}`, undefined],
        ['POST', `/uploads/${UNKNOWN}/finished`, { uploaded: [1] }],
      ] as const) {
        const answer = await ask(method, path, { json });
        const code = path.startsWith('/remotes') ? 'session_not_found' : 'not_found';
        expectError(answer, 404, { code });
        expect(answer.headers['x-service-message']).toMatch(/./);
      }
    },
  ),
];
