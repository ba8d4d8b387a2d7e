import { once } from 'node:events';
import { connect } from 'node:net';
import { beforeAll, expect, test } from 'vitest';
import { expectProblem, type Problem } from '../harness/clients/problem.ts';
import { senderOf } from '../harness/clients/sender.ts';
import { openSession } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';

describeStack(missingPrograms('sshd'), 'what clients send', form => {
  const { stack, client, sshd } = useRemoteStack(form);
  const send = senderOf(client);
  let sid: string;

  beforeAll(async () => {
    sid = await openSession(client, sshd);
  });

  const fieldsOf = (problem: Problem) => problem.fields?.map(({ field }) => field).sort();

  test('400 names each wrong field, unknown ones too', async () => {
    const cases: [string, unknown, string[]][] = [
      ['/api/remotes/launch', {}, ['command', 'sid']],
      ['/api/remotes/launch', { sid, command: '' }, ['command']],
      ['/api/remotes/launch', { sid, command: 'a\0b', colour: 1 }, ['colour', 'command']],
      ['/api/remotes/launch', { sid, command: 'a\ud800' }, ['command']],
      ['/api/remotes/launch', { sid: 1, command: 5 }, ['command', 'sid']],
      ['/api/remotes/launch', [], ['body']],
      ['/api/remotes/launch', 'true', ['body']],
      ['/api/remotes/launch', null, ['body']],
      [
        '/api/remotes',
        { hostname: 'host', username: 'u', password: 'p', privateKey: 'k' },
        ['password'],
      ],
      ['/api/remotes', { hostname: 'host', username: 'u', privateKey: 'no key' }, ['privateKey']],
      [
        '/api/remotes',
        { hostname: 'host', username: 'a\nb', password: 'p', passphrase: 'x', port: 0, agent: 1 },
        ['agent', 'port', 'username'],
      ],
      ['/api/hosts', { name: 'a b', port: 70_000, keys: ['x'] }, ['keys.0', 'name', 'port']],
      ['/api/hosts', { name: 'x' }, ['keys']],
      ['/api/hosts', { name: 'x', keys: [], trust: 'later' }, ['keys', 'trust']],
      [
        '/api/users',
        { username: '-', password: 'short', admin: true },
        ['admin', 'password', 'username'],
      ],
      [
        `/api/remotes/${sid}/videos`,
        { fps: 0, width: 1, encode: 'moon' },
        ['encode', 'fps', 'width'],
      ],
      [
        `/api/remotes/${sid}/videos`,
        { 'content-type': 'video/mp4', images: ['/a', 'relative'] },
        ['images.1'],
      ],
      [
        `/api/remotes/${sid}/videos`,
        { 'content-type': 'video/mp4', images: ['/a\ud800'] },
        ['images.0'],
      ],
    ];
    for (const [path, body, fields] of cases) {
      const problem = await expectProblem(await send('POST', path, body), 400, 'invalid_input');
      expect([path, body, fieldsOf(problem)]).toEqual([path, body, fields]);
      for (const field of fields) expect(problem.detail).toContain(`${field}: `);
    }
    for (const query of ['limit=0', 'limit=x', 'limit=1001', 'colour=red', 'limit=1&limit=2']) {
      const response = await client.fetch(`/api/jobs?${query}`);
      expect([query, response.status]).toEqual([query, 400]);
    }
    await expectProblem(await client.fetch('/api/jobs?after=%00'), 400, 'invalid_input');
    const sneaky = await client.fetch('/api/users', {
      method: 'POST',
      body: '{"username":"sneaky","password":"long enough","__proto__":{"administrator":true}}',
    });
    expect(sneaky.status).not.toBe(500);
    if (sneaky.ok) expect(await sneaky.json()).toMatchObject({ administrator: false });
  });

  test('a query that a change does not look at is refused, and not passed over', async () => {
    const { id } = await client.post<{ id: string }>('/api/projects', { name: 'kept' });
    const command = { sid, command: 'true' };
    for (const [method, path, body] of [
      ['DELETE', `/api/projects/${id}?dryRun=true`],
      ['PUT', `/api/projects/${id}?dryRun=true`, { name: 'other' }],
      ['POST', '/api/remotes/launch?dryRun=true', command],
      ['PUT', `/api/models/none/parameters/a?dryRun=true`, { value: 1 }],
    ] as const) {
      const answer = await send(method, path, body);
      const problem = await expectProblem(answer, 400, 'invalid_input');
      expect([path, fieldsOf(problem)]).toEqual([path, ['dryRun']]);
    }
    expect(await client.get(`/api/projects/${id}`)).toMatchObject({ name: 'kept' });
  });

  const launch = (text: string) =>
    client.fetch('/api/remotes/launch', { method: 'POST', body: text });

  test('a body that has a member twice is refused', async () => {
    for (const text of [
      `{"sid":"${sid}","command":"true","command":"false"}`,
      `{"sid":"${sid}","command":"true","env":{"A":"1","\\u0041":"2"}}`,
    ]) {
      const problem = await expectProblem(await launch(text), 400, 'invalid_input');
      expect([text, problem.detail]).toEqual([text, expect.stringContaining('member twice')]);
    }
    const once = `{"sid":"${sid}","command":"echo $A","env":{"A":"a:\\"b\\":","B":""}}`;
    expect(await (await launch(once)).json()).toMatchObject({ output: 'a:"b":\n' });
  });

  test('a name that no record can hold is refused, and not dropped', async () => {
    const variables = `{"sid":"${sid}","command":"true","env":{"__proto__":"1"}}`;
    const problem = await expectProblem(await launch(variables), 400, 'invalid_input');
    expect(fieldsOf(problem)).toEqual(['env.__proto__']);
    const types = `{"mid":"none","input":false,"parser":"csv","aids":["a"],"types":{"__proto__":"text"}}`;
    const upload = await client.fetch('/api/uploads', { method: 'POST', body: types });
    expect(fieldsOf(await expectProblem(upload, 400, 'invalid_input'))).toEqual([
      'types.__proto__',
    ]);
  });

  test('in a query only digits are a number', async () => {
    for (const path of ['/api/jobs?limit=', '/api/projects?limit='])
      for (const value of ['', '%20', '0x10', '1e2', '1.0', '%2B5', '5%20', 'NaN']) {
        const problem = await expectProblem(await client.fetch(path + value), 400, 'invalid_input');
        expect([path, value, fieldsOf(problem)]).toEqual([path, value, ['limit']]);
      }
    expect((await client.fetch('/api/jobs?limit=007')).status).toBe(200);
  });

  test('an Idempotency-Key is looked at also where nothing comes of it', async () => {
    const body = { name: 'keyed', keys: [sshd.hostKey] };
    const long = { 'Idempotency-Key': 'k'.repeat(256) };
    const problem = await expectProblem(
      await send('POST', '/api/hosts', body, long),
      400,
      'invalid_input',
    );
    expect(fieldsOf(problem)).toEqual(['Idempotency-Key']);
    expect((await client.fetch('/api/hosts/keyed')).status).toBe(404);
  });

  test('bodies: 413, 415, what is no JSON, no UTF-8 or too deep', async () => {
    const post = (
      body: RequestInit['body'],
      type = 'application/json',
      headers: Record<string, string> = {},
    ) =>
      stack.api('/api/remotes/launch', {
        method: 'POST',
        headers: { 'Content-Type': type, ...headers },
        body,
      });
    const command = JSON.stringify({ sid, command: 'true' });
    const large = JSON.stringify({ sid, command: 'x'.repeat(8 << 20) });
    await expectProblem(await post(large), 413, 'payload_too_large');
    const fits = JSON.stringify({ sid, command: 'x'.repeat(131_001) });
    await expectProblem(await post(fits), 400, 'invalid_input');
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonx'])
      await expectProblem(await post(command, type), 415, 'unsupported_media_type');
    for (const charset of ['latin1', 'utf-16'])
      await expectProblem(
        await post(command, `application/json; charset=${charset}`),
        415,
        'unsupported_media_type',
      );
    await expectProblem(
      await post(command, 'application/json', { 'Content-Encoding': 'compress' }),
      415,
      'unsupported_media_type',
    );
    await expectProblem(
      await post(command, 'application/json', { 'Content-Encoding': 'gzip' }),
      400,
      'bad_request',
    );
    for (const text of ['{', '{"sid": undefined}', "{'sid': 1}", `${command}x`])
      await expectProblem(await post(text), 400, 'invalid_input');
    const latin1 = Buffer.from(`{"sid":"${sid}","command":"echo \xe4"}`, 'latin1');
    const problem = await expectProblem(await post(latin1), 400, 'invalid_input');
    expect(problem.detail).toContain('not UTF-8');
    const deep = `{"sid":"${sid}","command":${'['.repeat(50_000)}${']'.repeat(50_000)}}`;
    const tooDeep = await expectProblem(await post(deep), 400, 'invalid_input');
    expect(tooDeep.detail).toContain('100 deep');
    const none = await stack.api('/api/remotes/launch', { method: 'POST' });
    await expectProblem(none, 400, 'invalid_input');
    expect((await post(command, 'application/json; charset=UTF-8')).status).toBe(200);
  });

  test('what Node’s parser refuses is a problem document too', async () => {
    const raw = async (text: string) => {
      const socket = connect(Number(new URL(stack.url).port), '127.0.0.1');
      let answer = '';
      socket.setEncoding('utf8').on('data', piece => {
        answer += piece;
      });
      socket.write(text);
      await once(socket, 'close');
      const [head = '', body = ''] = answer.split('\r\n\r\n');
      return { head, problem: JSON.parse(body) as Problem };
    };
    const headers = await raw(`GET / HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(40_000)}\r\n\r\n`);
    expect(headers.head).toMatch(/^HTTP\/1\.1 431 /);
    expect(headers.head).toContain('X-Service-Message: Header fields too large');
    expect(headers.problem).toMatchObject({ status: 431, code: 'headers_too_large' });
    const address = await raw(`GET /${'x'.repeat(40_000)} HTTP/1.1\r\nHost: x\r\n\r\n`);
    expect(address.problem).toMatchObject({ status: 414, code: 'address_too_long' });
    const nonsense = await raw('NONSENSE\r\n\r\n');
    const hint = expect.stringContaining('a port that speaks http.');
    expect(nonsense.problem).toMatchObject({ status: 400, code: 'bad_request', hint });
    await expectProblem(
      await client.fetch(`/api/jobs?after=${'x'.repeat(9_000)}`),
      414,
      'address_too_long',
    );
  });

  test('addresses that cannot be decoded are 400, whatever they name', async () => {
    for (const path of ['/api/jobs/%FF', '/api/hosts/a%', '/api/users/%C3%28'])
      await expectProblem(await client.fetch(path), 400, 'bad_request');
    const umlaut = await client.fetch('/api/hosts/h%C3%B6st%0A1');
    const problem = await expectProblem(umlaut, 404, 'not_found');
    expect(problem.detail).toContain('höst\n1');
    expect(umlaut.headers.get('X-Service-Message')).toContain('h?st?1');
  });
});
