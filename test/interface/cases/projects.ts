import { expect } from 'vitest';
import { type Row, row } from '../row.ts';
import { expectAnswer, expectError } from '../tools.ts';

const at = (words: string) => `Projects, models: ${words}`;
const JSON_TYPE = { 'Content-Type': 'application/json' };
const PARAMETER = '/models/{mid}/parameters/{aid}';

/** Projects, models, parameters, bookmarks and events; tables and files have a file of their own. */
export const PROJECTS: Row[] = [
  row(
    at('POST /projects 201 {id} and Location; GET /projects; GET, PUT, DELETE /projects/(pid)'),
    'POST /projects, GET /projects, GET /projects/{pid}, PUT /projects/{pid}, DELETE /projects/{pid}',
    async ({ ask, world }) => {
      const json = { name: world.name('project'), description: 'd', acl: { readers: [] } };
      const made = await ask('POST', '/projects', { json });
      expectAnswer(made, 201, { json: { id: expect.any(String) } });
      const { id } = made.json();
      expect(made.headers.location).toBe(`/api/projects/${id}`);
      const listed = await ask('GET', '/projects?limit=1000');
      expect(listed.json().items).toContainEqual(expect.objectContaining({ id, name: json.name }));
      const path = `/projects/${id}`;
      expectAnswer(await ask('PUT', path, { json: { name: 'other' } }), 200);
      expect((await ask('GET', path)).json()).toMatchObject({ name: 'other', description: 'd' });
      expectAnswer(await ask('DELETE', path), 204, { reason: 'Project deleted.' });
      for (const method of ['GET', 'DELETE'])
        expectError(await ask(method, path), 404, { code: 'not_found' });
    },
  ),
  row(
    at('DELETE of a project cancels its jobs'),
    'DELETE /projects/{pid}',
    async ({ ask, make, ended }) => {
      const pid = await make.newProject();
      const [frame = ''] = await make.frames();
      const images = Array(20_000).fill(frame);
      const { vsid } = await make.newVideo({ images, project: pid, key: 'k' });
      expectAnswer(await ask('DELETE', `/projects/${pid}`), 204, { reason: 'Project deleted.' });
      expect(await ended(vsid)).toMatchObject({ state: 'cancelled' });
    },
    'host',
  ),
  row(
    at('POST /projects/(pid)/models 201 {id}; GET …/models; GET, PUT, DELETE /models/(mid)'),
    'POST /projects/{pid}/models, GET /projects/{pid}/models, GET /models/{mid}, PUT /models/{mid}, DELETE /models/{mid}',
    async ({ ask, make, world }) => {
      const { pid } = await make.projectWithModel();
      const json = { 'model-type': 'any name', name: world.name('model'), marking: 'm' };
      const made = await ask('POST', `/projects/${pid}/models`, { json });
      expectAnswer(made, 201, { json: { id: expect.any(String) } });
      const path = `/models/${made.json().id}`;
      expect(made.headers.location).toBe(`/api${path}`);
      const listed = await ask('GET', `/projects/${pid}/models?limit=1000`);
      const { id } = made.json();
      expect(listed.json().items).toContainEqual(expect.objectContaining({ id, ...json }));
      expectAnswer(await ask('PUT', path, { json: { description: 'd' } }), 200);
      expect((await ask('GET', path)).json()).toMatchObject({ ...json, description: 'd' });
      expectAnswer(await ask('DELETE', path), 204);
      expectError(await ask('GET', path), 404, { code: 'not_found' });
    },
  ),
  row(
    at('GET of a model gives its artifacts and its parses'),
    'GET /models/{mid}',
    async ({ ask, make, world }) => {
      const aid = world.name('shown');
      await make.parse(aid, '12345', 'blob');
      const { mid } = await make.projectWithModel();
      const model = (await ask('GET', `/models/${mid}?limit=10000`)).json();
      expect(model.artifacts).toContainEqual({
        aid,
        type: 'file',
        input: false,
        size: 5,
        updated: expect.any(String),
      });
      expect(model.parses).toContainEqual(
        // `error` is there where there is one.
        {
          aids: [aid],
          parser: 'blob',
          state: 'done',
          finished: expect.stringMatching(/^\d{4}-.*Z$/),
        },
      );
    },
  ),
  row(
    at('a parameter comes back as it was sent, byte for byte, less white space around it'),
    `PUT ${PARAMETER}, GET ${PARAMETER}`,
    async ({ ask, make, world }) => {
      const path = `/models/${(await make.projectWithModel()).mid}/parameters/${world.name('exact')}`;
      for (const value of [
        'null',
        '9007199254740993',
        '-0',
        '1e400',
        '1.50',
        '{"b": 1,\n "a":2,"b":3}',
        '"\\u0041\\/\\ud800"',
        '[ 1 , 2 ]',
      ]) {
        const options = { body: `{"input":true,"value": ${value} }`, headers: JSON_TYPE };
        expectAnswer(await ask('PUT', path, options), 200);
        const answer = await ask('GET', path);
        expectAnswer(answer, 200, { type: 'application/json' });
        expect(answer.text).toBe(value);
      }
    },
  ),
  row(
    at('a member given twice at the top level: 400'),
    `PUT ${PARAMETER}, GET ${PARAMETER}`,
    async ({ ask, make }) => {
      const path = `/models/${(await make.projectWithModel()).mid}/parameters/twice`;
      for (const body of ['{"value":1,"value":2}', '{"value":1,"input":true,"input":true}'])
        expectError(await ask('PUT', path, { body, headers: JSON_TYPE }), 400, {
          code: 'invalid_input',
        });
      expectError(await ask('GET', path), 404, { code: 'not_found' });
    },
  ),
  row(
    at('DELETE of a parameter 204'),
    `DELETE ${PARAMETER}, GET ${PARAMETER}`,
    async ({ ask, make, world }) => {
      const path = `/models/${(await make.projectWithModel()).mid}/parameters/${world.name('gone')}`;
      await make.call('PUT', path, { json: { value: 1 } });
      expectAnswer(await ask('DELETE', path), 204);
      for (const method of ['GET', 'DELETE'])
        expectError(await ask(method, path), 404, { code: 'not_found' });
    },
  ),
  row(
    at(
      'POST /projects/(pid)/bookmarks 201 {id}, the same id for the same bytes in the same project',
    ),
    'POST /projects/{pid}/bookmarks, GET /projects/{pid}/bookmarks, GET /bookmarks/{bid}, DELETE /bookmarks/{bid}',
    async ({ ask, make, world }) => {
      const [{ pid }, other] = [await make.projectWithModel(), await make.newProject()];
      const json = { n: world.name('state') };
      const store = async (project: string, body: object) => {
        const answer = await ask('POST', `/projects/${project}/bookmarks`, { json: body });
        expectAnswer(answer, 201);
        expect(answer.headers.location).toBe(`/api/bookmarks/${answer.json().id}`);
        return answer.json().id;
      };
      const id = await store(pid, json);
      expect(await store(pid, json)).toBe(id);
      expect(await store(pid, { ...json, more: 1 })).not.toBe(id);
      expect(await store(other, json)).not.toBe(id);
      expectAnswer(await ask('GET', `/bookmarks/${id}`), 200, { json });
      const { items } = (await ask('GET', `/projects/${pid}/bookmarks`)).json<{
        items: { id: string }[];
      }>();
      const size = JSON.stringify(json).length;
      expect(items.filter(each => each.id === id)).toMatchObject([{ size }]);
      expectAnswer(await ask('DELETE', `/bookmarks/${id}`), 204);
      expectError(await ask('GET', `/bookmarks/${id}`), 404, { code: 'not_found' });
    },
  ),
  row(
    at('POST /events/(event) 204, whatever bytes the path holds, and nothing at all'),
    'POST /events/{event}',
    async ({ ask }) => {
      for (const event of ['/%FF', '/a%', '/', '', '//', '/%2e%2e/x', '?only=query'])
        expectAnswer(await ask('POST', `/events${event}`), 204);
    },
  ),
  row(
    at('one structured log line an event (user, path, query, time), never more'),
    'POST /events/{event}',
    async ({ ask, world }) => {
      const id = world.name('line');
      await ask('POST', `/events/${id}?q=1`, { headers: { 'X-Request-Id': id } });
      await ask('POST', `/events/after-${id}`);
      const lines = () => world.stack.log().split('\n');
      await expect.poll(() => lines().join(), { timeout: 20_000 }).toContain(`after-${id}`);
      const found = lines().filter(line => line.includes(`"${id}"`));
      expect(found).toHaveLength(1);
      expect(JSON.parse(found[0] ?? '')).toMatchObject({
        time: expect.stringMatching(/Z$/),
        event: { user: world.user.username, path: id, query: 'q=1' },
      });
    },
  ),
  row(
    at('the body of an event is read and dropped, within a size limit'),
    'POST /events/{event}',
    async ({ ask }) => {
      expectAnswer(await ask('POST', '/events/big', { body: 'x'.repeat(1 << 20) }), 204);
      const tooMuch = await ask('POST', '/events/big', { body: 'x'.repeat((16 << 20) + 1) });
      expectError(tooMuch, 413, { code: 'payload_too_large' });
    },
  ),
];
