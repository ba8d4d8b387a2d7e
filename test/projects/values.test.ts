import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { beforeAll, expect, test } from 'vitest';
import type { Client } from '../../servers/api-client.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import {
  addUsers,
  makeModel,
  makeProject,
  PEOPLE,
  type People,
} from '../harness/clients/projects.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStarted } from '../harness/stacks/use-stack.ts';

const MB = 1 << 20;
/** What a value that went through a parser would lose. */
const DELICATE = [
  'null',
  'false',
  '-0',
  '1e400',
  '123456789012345678901234567890123456789012345678901',
  '1.10',
  '"\\ud800"',
  '"\\u0000"',
  '"\\/\\u00e9é😀\u2028"',
  '{"b":1,"a":2,"b":3}',
  '{"__proto__":{"x":1},"":0}',
  '[ 1 ,\n\t2 ]',
  `${'['.repeat(99)}${']'.repeat(99)}`,
];

describeStack(undefined, 'parameters and bookmarks', form => {
  const stack = useStarted(() => form.start());
  let people: People;
  let pid: string;
  let mid: string;

  beforeAll(async () => {
    people = await addUsers(stack, PEOPLE);
    pid = await makeProject(people);
    mid = await makeModel(people, pid);
  });

  const at = (aid: string, model = mid) =>
    `/api/models/${model}/parameters/${encodeURIComponent(aid)}`;
  const put = (client: Client, path: string, body: string | Buffer, headers = {}) =>
    client.fetch(path, { method: 'PUT', body: body as string, headers });
  /** The status; the path is sent with its dots. */
  const putAsItIs = async (path: string) => {
    const headers = { 'Content-Type': 'application/json', Authorization: authorization('writer') };
    const sending = request(stack.url, { path, method: 'PUT', headers }).end('{"value":1}');
    const [answer] = (await once(sending, 'response')) as [IncomingMessage];
    answer.resume();
    return answer.statusCode;
  };
  const post = (client: Client, body: string | Buffer, project = pid) =>
    client.fetch(`/api/projects/${project}/bookmarks`, { method: 'POST', body: body as string });
  const save = async (client: Client, body: string) => {
    const response = await post(client, body);
    expect(response.status).toBe(201);
    const { id } = (await response.json()) as { id: string };
    expect(response.headers.get('Location')).toBe(`/api/bookmarks/${id}`);
    return id;
  };

  test('a parameter stays an input where its mark is not sent', async () => {
    const own = await makeModel(people, pid);
    const markOf = async () => {
      const { artifacts } = await people.writer.get<{
        artifacts: { aid: string; input: boolean }[];
      }>(`/api/models/${own}`);
      return artifacts.find(({ aid }) => aid === 'marked')?.input;
    };
    const marks = [];
    for (const body of [
      '{"value":0}',
      '{"value":1,"input":true}',
      '{"value":2}',
      '{"value":3,"input":false}',
    ]) {
      expect((await put(people.writer, at('marked', own), body)).status).toBe(200);
      marks.push(await markOf());
    }
    expect(marks).toEqual([false, true, true, false]);
  });

  test('a byte order mark is passed over, as in every JSON body', async () => {
    const own = await makeModel(people, pid);
    const mark = '\ufeff';
    expect((await put(people.writer, at('bom', own), `${mark}{"value": "${mark}a"}`)).status).toBe(
      200,
    );
    const value = await people.writer.fetch(at('bom', own));
    expect(Buffer.from(await value.arrayBuffer()).toString()).toBe(`"${mark}a"`);
    const ids = [];
    for (const body of [`${mark}{"bom":1}`, '{"bom":1}']) {
      const stored = await post(people.writer, body);
      expect(stored.status).toBe(201);
      ids.push(((await stored.json()) as { id: string }).id);
    }
    expect(ids[0]).toBe(ids[1]);
    const project = await people.writer.fetch('/api/projects', {
      method: 'POST',
      body: `${mark}{"name":"bom"}`,
    });
    expect(project.status).toBe(201);
    expect((await post(people.writer, `${mark}${mark}{}`)).status).toBe(400);
  });

  test('a value comes back byte for byte, whatever it is', async () => {
    const { writer, reader } = people;
    for (const [i, value] of DELICATE.entries()) {
      const path = at(`delicate ${i}`);
      const stored = await put(writer, path, ` {"input": true,\n "value" : \t${value} } `);
      expect([value, stored.status, await stored.text()]).toEqual([value, 200, '']);
      const found = await reader.fetch(path);
      expect(found.headers.get('Content-Type')).toMatch(/^application\/json/);
      expect(await found.text()).toBe(value);
      const head = await reader.fetch(path, { method: 'HEAD' });
      expect(head.headers.get('Content-Length')).toBe(String(Buffer.byteLength(value)));
      const unchanged = await reader.fetch(path, {
        headers: { 'If-None-Match': found.headers.get('ETag') ?? '' },
      });
      expect([unchanged.status, await unchanged.text()]).toEqual([304, '']);
    }
    const { artifacts } = await reader.get<{ artifacts: object[] }>(`/api/models/${mid}`);
    expect(artifacts).toHaveLength(DELICATE.length);
    expect(artifacts[0]).toEqual({
      aid: 'delicate 0',
      type: 'parameter',
      input: true,
      size: 4,
      updated: expect.stringMatching(/Z$/),
    });
  });

  test('a parameter is replaced and removed, and its tag is never that of another value', async () => {
    const { writer } = people;
    const path = at('replaced');
    const tags = new Set<string>();
    const tag = async () => {
      const found = (await writer.fetch(path)).headers.get('ETag') ?? '';
      expect(tags.has(found)).toBe(false);
      tags.add(found);
      return found;
    };
    const any = { 'If-Match': '*' };
    await expectProblem(await put(writer, path, '{"value":0}', any), 412, 'precondition_failed');
    expect((await put(writer, path, '{"value":1}')).status).toBe(200);
    const first = await tag();
    expect((await put(writer, path, '{"value":2}', { 'If-Match': first })).status).toBe(200);
    const second = await tag();
    const stale = await put(writer, path, '{"value":3}', { 'If-Match': first });
    await expectProblem(stale, 412, 'precondition_failed');
    expect(await (await writer.fetch(path)).text()).toBe('2');
    const remove = (condition: string) =>
      writer.fetch(path, { method: 'DELETE', headers: { 'If-Match': condition } });
    await expectProblem(await remove(first), 412, 'precondition_failed');
    expect((await remove(second)).status).toBe(204);
    await expectProblem(await writer.fetch(path), 404, 'not_found');
    await expectProblem(await writer.fetch(path, { method: 'DELETE' }), 404, 'not_found');
    await put(writer, path, '{"value":4}');
    await tag();
  });

  test('a step in an address is no name, and reaches nothing above', async () => {
    const { writer } = people;
    const model = await makeModel(people, pid);
    const path = `/api/models/${model}/parameters`;
    // fetch() sends `/api/models/(mid)/` for these.
    for (const step of ['%2E%2E', '..', '.%2e'])
      for (const method of ['DELETE', 'PUT'])
        expect(
          await expectProblem(await writer.fetch(`${path}/${step}`, { method }), 404, 'not_found'),
        ).toMatchObject({ detail: expect.stringContaining('ends with a slash') });
    expect((await writer.fetch(`/api/models/${model}`)).status).toBe(200);
    for (const step of ['..', '.'])
      expect([step, await putAsItIs(`${path}/${step}`)]).toEqual([step, 400]);
  });

  test('If-None-Match: * makes a parameter, and replaces none', async () => {
    const { writer } = people;
    const path = at('made once');
    const isNew = { 'If-None-Match': '*' };
    const all = Array.from({ length: 10 }, (_, n) => put(writer, path, `{"value":${n}}`, isNew));
    const statuses = (await Promise.all(all)).map(({ status }) => status);
    expect(statuses.toSorted()).toEqual([200, ...Array(9).fill(412)]);
    const value = await writer.get(path);
    expect(value).toBe(statuses.indexOf(200));
    const again = await put(writer, path, '{"value":1}', isNew);
    await expectProblem(again, 412, 'precondition_failed');
    const tag = (await writer.fetch(path)).headers.get('ETag') ?? '';
    const same = { 'If-None-Match': tag };
    await expectProblem(await put(writer, path, '{"value":1}', same), 412, 'precondition_failed');
    expect(await writer.get(path)).toBe(value);
    const other = { 'If-None-Match': '"other"' };
    expect((await put(writer, path, '{"value":"another"}', other)).status).toBe(200);
  });

  test('of many who write one parameter at once each writes the whole, and none is lost', async () => {
    const path = at('contested');
    const values = Array.from({ length: 20 }, (_, i) => JSON.stringify(`${i}`.repeat(10_000)));
    const answers = await Promise.all(
      values.map(value => put(people.writer, path, `{"value":${value}}`)),
    );
    expect(answers.map(answer => answer.status)).toEqual(values.map(() => 200));
    expect(values).toContain(await (await people.reader.fetch(path)).text());
  });

  test('names are any text of 1 to 255 characters, decoded once', async () => {
    const { writer } = people;
    for (const aid of [
      'a/b',
      'a%2Fb',
      'ä😀',
      '..%',
      ' ',
      '__proto__',
      '+',
      'x'.repeat(255),
      '😀'.repeat(255),
    ]) {
      const value = JSON.stringify(aid);
      expect([aid, (await put(writer, at(aid), `{"value":${value}}`)).status]).toEqual([aid, 200]);
      expect(await (await writer.fetch(at(aid))).text()).toBe(value);
    }
    for (const aid of ['a%00b', 'a%0Ab', 'x'.repeat(256), '%C2%85']) {
      const answer = await put(writer, `/api/models/${mid}/parameters/${aid}`, '{"value":1}');
      const { fields } = await expectProblem(answer, 400, 'invalid_input');
      expect(fields?.[0]?.field).toBe('aid');
    }
    for (const aid of ['%FF', '%C3%28', 'a%', '%ED%A0%80'])
      await expectProblem(
        await writer.fetch(`/models/${mid}/parameters/${aid}`),
        400,
        'bad_request',
      );
  });

  test('what is no such body is refused, and says why', async () => {
    const { writer, reader } = people;
    const path = at('refused');
    const cases: [string, string][] = [
      ['{}', 'value'],
      ['{"value":1,"colour":2}', 'colour'],
      ['{"value":1,"value":1}', 'value'],
      ['{"value":1,"input":1}', 'input'],
      ['[1]', 'body'],
      ['{"value":1,}', 'body'],
      ['{"value":1} //', 'body'],
      ['{"value":NaN}', 'body'],
      ['{"value":"\n"}', 'body'],
      ['{"value":1}x', 'body'],
      ['{"value":01}', 'body'],
      ['\ufeff\ufeff{"value":1}', 'body'],
      [`{"value":${'['.repeat(100)}${']'.repeat(100)}}`, 'body'],
      [' ', 'body'],
    ];
    for (const [body, field] of cases) {
      const problem = await expectProblem(await put(writer, path, body), 400, 'invalid_input');
      expect([body, problem.fields?.[0]?.field]).toEqual([body, field]);
    }
    const latin = Buffer.from('{"value":"é"}', 'latin1');
    await expectProblem(await put(writer, path, latin), 400, 'invalid_input');
    const send = (type: string) =>
      fetch(`${stack.url}${path}`, {
        method: 'PUT',
        body: '{"value":1}',
        headers: { 'Content-Type': type, Authorization: authorization('writer') },
      });
    await expectProblem(await send('text/plain'), 415, 'unsupported_media_type');
    const charset = await send('application/json; charset=latin1');
    await expectProblem(charset, 415, 'unsupported_media_type');
    await expectProblem(await reader.fetch(path), 404, 'not_found');
  });

  const authorization = (username: string) => `Basic ${btoa(`${username}:a long password`)}`;

  test('16 MiB are taken, a byte more is not', async () => {
    const { writer, reader } = people;
    const path = at('big');
    const fill = (bytes: number) => `{"value":"${'é'.repeat((bytes - 12) / 2)}"}`;
    expect(Buffer.byteLength(fill(16 * MB))).toBe(16 * MB);
    expect((await put(writer, path, fill(16 * MB))).status).toBe(200);
    const found = await (await reader.fetch(path)).text();
    expect(found === fill(16 * MB).slice(9, -1)).toBe(true);
    await expectProblem(await put(writer, path, `${fill(16 * MB)} `), 413, 'payload_too_large');

    const state = fill(16 * MB);
    const bid = await save(writer, state);
    expect((await (await reader.fetch(`/api/bookmarks/${bid}`)).text()) === state).toBe(true);
    await expectProblem(await post(writer, `${state} `), 413, 'payload_too_large');
  });

  test('many big ones at once are all taken, and small requests go on meanwhile', async () => {
    const { writer, reader } = people;
    const value = `[${'[],'.repeat(2_500_000)}1]`;
    let isDone = false;
    const all = Promise.all(
      Array.from({ length: 4 }, (_, i) => put(writer, at(`wide ${i}`), `{"value":${value}}`)),
    ).finally(() => {
      isDone = true;
    });
    let others = 0;
    while (!isDone) {
      expect((await reader.fetch(`/api/projects/${pid}`)).status).toBe(200);
      others++;
    }
    expect((await all).map(answer => answer.status)).toEqual([200, 200, 200, 200]);
    // Where one of them stopped the process, this would be a handful.
    expect(others).toBeGreaterThan(8);
  });

  test('a client that leaves in the middle leaves nothing', async () => {
    const path = at('left');
    const left = new Promise(resolve => {
      const sending = request(`${stack.url}${path}`, {
        method: 'PUT',
        headers: {
          'Content-Type': 'application/json',
          'Content-Length': MB,
          Authorization: authorization('writer'),
        },
      });
      sending.on('error', resolve);
      sending.write('{"value":"', () => sending.destroy());
      sending.on('close', resolve);
    });
    await left;
    await expectProblem(await people.writer.fetch(path), 404, 'not_found');
  });

  test('the same bytes in the same project are one bookmark, also when two make it at once', async () => {
    const { writer, reader, owner } = people;
    const state = ' {"view": [1, 2.50], "view": null}\n';
    const ids = await Promise.all(Array.from({ length: 10 }, () => save(writer, state)));
    expect(new Set(ids).size).toBe(1);
    expect(await save(owner, state)).toBe(ids[0]);
    expect(await save(writer, state.trim())).not.toBe(ids[0]);
    const other = await makeProject(people, 'other');
    const elsewhere = await (await post(writer, state, other)).json();
    expect(elsewhere).not.toEqual({ id: ids[0] });

    for (const prefix of ['', '/api']) {
      const found = await reader.fetch(`${prefix}/bookmarks/${ids[0]}`);
      const headers = ['Cache-Control', 'Pragma', 'Expires', 'ETag'];
      expect(headers.map(name => found.headers.get(name))).toEqual([
        'no-cache, no-store, must-revalidate',
        'no-cache',
        '0',
        null,
      ]);
      expect(found.headers.get('Content-Type')).toMatch(/^application\/json/);
      expect(await found.text()).toBe(state);
    }
    const remove = (client: Client) =>
      client.fetch(`/api/bookmarks/${ids[0]}`, { method: 'DELETE' });
    await expectProblem(await remove(reader), 403, 'forbidden');
    await expectProblem(await remove(people.stranger), 404, 'not_found');
    expect((await remove(writer)).status).toBe(204);
    await expectProblem(await remove(writer), 404, 'not_found');
    for (const body of ['[]', '1', 'null', '{"a":1,}', ''])
      await expectProblem(await post(writer, body || ' '), 400, 'invalid_input');
  });

  test('readers read, writers write, and to others there is nothing', async () => {
    const { owner, writer, reader, stranger } = people;
    const path = at('guarded');
    await put(owner, path, '{"value":1}');
    const bid = await save(owner, '{"guarded":true}');
    const server = { fetch: (to: string, init?: RequestInit) => stack.api(to, init) };
    for (const outsider of [stranger, server]) {
      const json = { headers: { 'Content-Type': 'application/json' } };
      for (const [to, init] of [
        [path, {}],
        [path, { method: 'PUT', body: '{"value":2}', ...json }],
        [path, { method: 'DELETE' }],
        [`/api/bookmarks/${bid}`, {}],
        [`/api/projects/${pid}/bookmarks`, { method: 'POST', body: '{}', ...json }],
      ] as const)
        await expectProblem(await outsider.fetch(to, init), 404, 'not_found');
    }
    expect(await reader.get(path)).toBe(1);
    expect(await reader.get(`/api/bookmarks/${bid}`)).toEqual({ guarded: true });
    await expectProblem(await put(reader, path, '{"value":2}'), 403, 'forbidden');
    await expectProblem(await reader.fetch(path, { method: 'DELETE' }), 403, 'forbidden');
    await expectProblem(await post(reader, '{}'), 403, 'forbidden');
    expect((await put(writer, path, '{"value":2}')).status).toBe(200);
    await expectProblem(await writer.fetch('/api/bookmarks/none'), 404, 'not_found');
    const method = await writer.fetch(path, { method: 'POST', body: '{}' });
    await expectProblem(method, 405, 'method_not_allowed');
    expect(method.headers.get('Allow')).toBe('GET, PUT, DELETE, HEAD');
  });

  test('who may not write is told so before the body is sent', async () => {
    const { hostname, port } = new URL(stack.url);
    const socket = connect(Number(port), hostname);
    const answer = new Promise<string>((resolve, reject) => {
      socket.on('error', reject);
      socket.on('data', bytes => resolve(String(bytes)));
    });
    socket.write(
      `PUT ${at('early')} HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization('reader')}\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{`,
    );
    expect(await answer).toMatch(/^HTTP\/1\.1 403 /);
    socket.destroy();
  });
});
