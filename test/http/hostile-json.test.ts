import { beforeAll, expect, test } from 'vitest';
import { type Described, fillPath, readOperations } from '../harness/clients/description.ts';
import { expectProblem, type Problem } from '../harness/clients/problem.ts';
import {
  beginUpload,
  finishUpload,
  makeModel,
  partPath,
  putPart,
} from '../harness/clients/uploads.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { UNLIMITED, useStack } from '../harness/stacks/use-stack.ts';

/** Bodies that no operation wants; these two keep any JSON, as it is. */
const KEEPS_ANYTHING = ['/api/models/{mid}/parameters/{aid}', '/api/projects/{pid}/bookmarks'];
const WIDE = `{${Array.from({ length: 50_000 }, (_unused, n) => `"k${n}":1`).join(',')}}`;
const BODIES: Record<string, string | Uint8Array> = {
  'what every object has':
    '{"__proto__":{"administrator":true},"constructor":{"prototype":{"administrator":true}},"prototype":1}',
  'a prototype of wrong type': '{"__proto__":[]}',
  'names of methods': '{"toString":1,"valueOf":null,"hasOwnProperty":true,"then":1}',
  'deep arrays': `${'['.repeat(50_000)}${']'.repeat(50_000)}`,
  'deep objects': `${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}`,
  'many members': WIDE,
  'a number beyond all': '{"limit":1e999999,"port":-1e999999,"name":1e309}',
  'many digits': `{"name":${'9'.repeat(100_000)}}`,
  'half surrogate pairs': '{"name":"\\ud800","\\udfff":"\\udc00"}',
  'NUL characters': '{"name":"a\\u0000b","\\u0000":"\\u0000","username":"\\u0000"}',
  'two byte order marks': '\ufeff\ufeff{}',
  'a name twice': '{"name":"a","name":1}',
  nothing: '',
  null: 'null',
  'an array': '[]',
  'a string': '"a"',
  'no JSON': '{name: a}',
  'a comment': '{}/* a */',
  'no UTF-8': new Uint8Array([0x22, 0xff, 0xfe, 0x22]),
};

const NAMES = {
  'half a surrogate pair': '\ud800',
  'a line break': 'a\nb',
  'a carriage return': 'a\r\nSet-Cookie: a=b',
  'an escape': '\x1b[2J',
  NUL: 'a\0b',
  DEL: 'a\x7f',
  'a C1 control': 'a\x85b',
};
/** These are kept as they are: composed and decomposed forms are different names. */
const KEPT = [
  'é',
  'e\u0301',
  '\u{1F469}\u200D\u{1F680}',
  '\u202Eabc',
  '\uFEFF',
  'ﬀ',
  ' ',
  '../..',
  '<b>',
  "';--",
];

describeStack(undefined, 'hostile bodies and names', form => {
  const { stack, client } = useStack(form, UNLIMITED);
  let operations: Described[];
  let pid: string;
  let mid: string;

  beforeAll(async () => {
    operations = await readOperations(stack);
    ({ pid, mid } = await makeModel(client));
  });

  async function expectRefusal(response: Response, what: string): Promise<void> {
    const text = await response.text();
    expect([what, response.status, text.slice(0, 300)]).toEqual([
      what,
      expect.toSatisfy((status: number) => status >= 400 && status < 500),
      expect.any(String),
    ]);
    expect(response.headers.get('Content-Type')).toBe('application/problem+json; charset=utf-8');
    if (what.startsWith('HEAD ')) return;
    expect((JSON.parse(text) as Problem).status).toBe(response.status);
  }

  test.each(Object.entries(BODIES))('no operation takes %s', async (_name, body) => {
    const taking = operations.filter(one => one.takesJson && !KEEPS_ANYTHING.includes(one.path));
    expect(taking.length).toBeGreaterThan(12);
    for (const { method, path } of taking) {
      // Of an update that changes nothing any record will do, and there is none of these names.
      const at = path.replace('{pid}', pid).replace('{mid}', mid);
      const response = await client.fetch(fillPath(at, '0'), {
        method,
        headers: { 'Content-Type': 'application/json' },
        body: body as string | Uint8Array<ArrayBuffer>,
      });
      await expectRefusal(response, `${method} ${path}`);
    }
  });

  test('nothing of it stuck: no object has more than it had', async () => {
    const password = 'a long password';
    const person = await client.post<object>('/api/users', { username: 'person', password });
    expect(person).toMatchObject({ administrator: false });
    const project = await client.get<object>(`/api/projects/${pid}`);
    expect(Object.keys(project)).not.toContain('administrator');
    expect((await client.fetch('/api/hosts')).status).toBe(200);
  });

  test.each(['__proto__', 'constructor', '%00', '..%2f..', '%F0%9F%92%A9', '9'.repeat(300), '%20'])(
    'no path takes %s for a name',
    async word => {
      const named = operations.filter(
        one => one.path.includes('{') && !one.path.includes('/events/'),
      );
      expect(named.length).toBeGreaterThan(30);
      for (const { method, path, takesJson } of named) {
        const response = await client.fetch(fillPath(path, word), {
          method,
          ...(takesJson ? { body: '{}' } : {}),
        });
        await expectRefusal(response, `${method} ${path}`);
      }
    },
  );

  test('no query takes what it does not know, or a number out of its range', async () => {
    const asked = operations.filter(one => one.query.length > 0);
    expect(asked.length).toBeGreaterThan(8);
    for (const { method, path, query } of asked) {
      const at = path.replace('{pid}', pid).replace('{mid}', mid);
      const wrong = ['__proto__=1', 'constructor=1', 'limit[a]=1'];
      for (const name of ['limit', 'offset', 'bins'].filter(one => query.includes(one)))
        wrong.push(
          ...['-1', '1e309', '0x10x', '99999999999999999999', 'NaN', '1,5'].map(
            value => `${name}=${value}`,
          ),
        );
      for (const text of wrong)
        await expectRefusal(
          await client.fetch(`${fillPath(at, '0')}?${text}`),
          `${method} ${path}?${text}`,
        );
    }
  });

  test.each(Object.entries(NAMES))('names and texts with %s are refused', async (_name, name) => {
    const file = { mid, input: true, parser: 'blob', aids: [name] };
    for (const [path, body] of [
      ['/api/projects', { name }],
      [`/api/projects/${pid}/models`, { name, 'model-type': 'any' }],
      [`/api/projects/${pid}/models`, { name: 'a', 'model-type': name }],
      ['/api/users', { username: name, password: 'a long password' }],
      ['/api/users/-/tokens', { name, scope: 'read' }],
      ['/api/hosts', { name, keys: [] }],
      ['/api/uploads', file],
    ] as const) {
      const response = await client.fetch(path, { method: 'POST', body: JSON.stringify(body) });
      await expectProblem(response, 400, 'invalid_input');
    }
    // A lone half cannot be written in a path at all.
    if (name === '\ud800') return;
    const at = `/api/models/${mid}/parameters/${encodeURIComponent(name)}`;
    await expectProblem(
      await client.fetch(at, { method: 'PUT', body: '{"value":1}' }),
      400,
      'invalid_input',
    );
  });

  test('other names stay as they were sent, and never leave the line of a header', async () => {
    for (const name of KEPT) {
      const at = `/api/models/${mid}/parameters/${encodeURIComponent(name)}`;
      const body = JSON.stringify({ value: name });
      expect((await client.fetch(at, { method: 'PUT', body })).status).toBe(200);
      expect(await client.get(at)).toBe(name);
      const { id } = await client.post<{ id: string }>('/api/projects', { name });
      expect(await client.get(`/api/projects/${id}`)).toMatchObject({ name });
    }
    const aids = KEPT.map(name => `file ${name} "quoted"; filename=x`);
    const uid = await beginUpload(client, mid, aids);
    for (const fid of aids.keys())
      await putPart(client, partPath(uid, fid, 0), new TextEncoder().encode('text'));
    expect(
      (
        await finishUpload(
          client,
          uid,
          aids.map(() => 1),
        )
      ).status,
    ).toBe(202);
    for (const aid of aids) {
      const at = `/api/models/${mid}/files/${encodeURIComponent(aid)}`;
      await expect.poll(async () => (await client.fetch(at)).status, { timeout: 30_000 }).toBe(200);
      const response = await client.fetch(at);
      expect(await response.text()).toBe('text');
      for (const value of response.headers.values()) expect(value).toMatch(/^[\x20-\x7e]*$/);
      expect(response.headers.get('X-Content-Type-Options')).toBe('nosniff');
    }
  });
});
