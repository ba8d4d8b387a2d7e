import { beforeAll, expect, test } from 'vitest';
import type { Problem } from '../harness/clients/problem.ts';
import { type RawAnswer, RawConnection } from '../harness/clients/raw-http.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStarted } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

/** What is sent, and what it is answered. `AUTH` stands for credentials, `NAME` for the request's id. */
type Case = [name: string, bytes: string | Buffer, status: number, code?: string];

const LONG = 'x'.repeat(9_000);
const get = (target: string, head = '') =>
  `GET ${target} HTTP/1.1\r\nHost: x\r\nAUTHNAME${head}\r\n`;
const post = (head: string, body = '', target = '/api/projects') =>
  `POST ${target} HTTP/1.1\r\nHost: x\r\nAUTHNAMEContent-Type: application/json\r\n${head}\r\n${body}`;
const chunked = (body: string) => post('Transfer-Encoding: chunked\r\n', body);

const TARGETS: Case[] = [
  ['..', get('/api/../api/users/-'), 404, 'not_found'],
  ['.. at the root', get('/../../etc/passwd'), 404, 'not_found'],
  ['escaped .. and slashes', get('/api/hosts/..%2f..%2fetc%2fpasswd'), 404, 'not_found'],
  ['escaped dots', get('/api/projects/%2e%2e/%2e%2e'), 404, 'not_found'],
  ['a backslash', get('/api\\users\\-'), 404, 'not_found'],
  ['two slashes first', get('//elsewhere/api/users/-'), 404, 'not_found'],
  ['NUL in a name', get('/api/hosts/a%00b'), 400, 'invalid_input'],
  ['NUL in an id', get('/api/jobs/%00'), 404, 'not_found'],
  ['NUL as it is', get('/api/jobs/\0'), 400, 'bad_request'],
  ['a line break as it is', get('/api/jobs/\n'), 400, 'bad_request'],
  ['DEL as it is', get('/api/jobs/\x7f'), 400, 'bad_request'],
  ['no UTF-8', get('/api/hosts/%FF'), 400, 'bad_request'],
  ['overlong UTF-8', get('/api/hosts/%C0%AE%C0%AE'), 400, 'bad_request'],
  ['half a surrogate pair', get('/api/hosts/%ED%A0%80'), 400, 'bad_request'],
  ['half an escape', get('/api/hosts/%4'), 400, 'bad_request'],
  ['a path that is too long', get(`/api/hosts/${LONG}`), 414, 'address_too_long'],
  ['a query that is too long', get(`/api/hosts?after=${LONG}`), 414, 'address_too_long'],
  ['an id of all digits', get(`/api/jobs/${'9'.repeat(400)}`), 404, 'not_found'],
  ['an id that every object has', get('/api/jobs/__proto__'), 404, 'not_found'],
  ['a name that every object has', get('/api/hosts/constructor'), 404, 'not_found'],
  ['a page of 1e309', get('/api/jobs?limit=1e309'), 400, 'invalid_input'],
  ['a page of 2^64', get('/api/jobs?limit=18446744073709551616'), 400, 'invalid_input'],
  ['a page of -1', get('/api/jobs?limit=-1'), 400, 'invalid_input'],
  ['a page of 1.5', get('/api/jobs?limit=1.5'), 400, 'invalid_input'],
  ['brackets in a query', get('/api/jobs?limit[__proto__]=1'), 400, 'invalid_input'],
  ['__proto__ in a query', get('/api/jobs?__proto__=1&constructor=1'), 400, 'invalid_input'],
  ['NUL in a query', get('/api/jobs?after=%00'), 400, 'invalid_input'],
];

const HEADS: Case[] = [
  ['a name with a space', get('/api/jobs', 'Content-Length : 5\r\n'), 400, 'bad_request'],
  ['a line without a colon', get('/api/jobs', 'nonsense\r\n'), 400, 'bad_request'],
  ['no name', get('/api/jobs', ': x\r\n'), 400, 'bad_request'],
  ['NUL', get('/api/jobs', 'X-Thing: a\0b\r\n'), 400, 'bad_request'],
  ['a bare CR', get('/api/jobs', 'X-Thing: a\rb\r\n'), 400, 'bad_request'],
  ['no Host', 'GET /api/jobs HTTP/1.1\r\nAUTHNAME\r\n', 400, 'bad_request'],
  [
    'two Host fields',
    'GET /api/users/- HTTP/1.1\r\nHost: x\r\nHost: y\r\nAUTHNAME\r\n',
    400,
    'bad_request',
  ],
  [
    'the same Host twice',
    'GET /api/users/- HTTP/1.1\r\nHost: x\r\nhost: x\r\nAUTHNAME\r\n',
    400,
    'bad_request',
  ],
  ['HTTP/0.9', 'GET /healthz\r\n\r\n', 400, 'bad_request'],
  ['HTTP/0.9, spelled out', 'GET /healthz HTTP/0.9\r\n\r\n', 400, 'bad_request'],
  ['HTTP/2.0', 'GET /healthz HTTP/2.0\r\nHost: x\r\n\r\n', 400, 'bad_request'],
  ['another version', 'GET /api/jobs HTTP/9.9\r\nHost: x\r\n\r\n', 400, 'bad_request'],
  ['no HTTP', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 400, 'bad_request'],
  ['too much', get('/api/jobs', `X-Thing: ${'x'.repeat(40_000)}\r\n`), 431, 'headers_too_large'],
  ['too many', get('/api/jobs', 'a:b\r\n'.repeat(20_000)), 431, 'headers_too_large'],
  ['2,500 of them', get('/api/users/-', 'a:b\r\n'.repeat(2_500)), 200],
  // Node drops what comes after 2,000, unless it is told not to.
  [
    'another Host after 2,500 of them',
    get('/api/users/-', `${'a:b\r\n'.repeat(2_500)}Host: y\r\n`),
    400,
    'bad_request',
  ],
  [
    'a coding after 2,500 of them',
    post(`${'a:b\r\n'.repeat(2_500)}Transfer-Encoding: gzip, chunked\r\n`, '0\r\n\r\n'),
    400,
    'bad_request',
  ],
  [
    'an Authorization of bytes',
    'GET /api/jobs HTTP/1.1\r\nHost: x\r\nNAMEAuthorization: Basic \xff\xfe\r\n\r\n',
    401,
    'unauthorized',
  ],
  [
    'a Basic of NULs',
    `GET /api/jobs HTTP/1.1\r\nHost: x\r\nNAMEAuthorization: Basic ${btoa('\0:\0')}\r\n\r\n`,
    401,
    'unauthorized',
  ],
  [
    'a cookie of bytes',
    'GET /api/jobs HTTP/1.1\r\nHost: x\r\nNAMECookie: serviceauth=%FF%00\xff; __proto__=1\r\n\r\n',
    401,
    'unauthorized',
  ],
  ['a Range of nonsense', get('/api/users/-', 'Range: bytes=-,5-1,99999999999999999999-\r\n'), 200],
  [
    'a Prefer of nonsense',
    get('/api/users/-', 'Prefer: wait=-1, wait=1e9; wait="\\", \xff\r\n'),
    200,
  ],
  ['an If-None-Match of nonsense', get('/api/users/-', 'If-None-Match: """,W/,\xff*\r\n'), 200],
  ['an Expect of nonsense', get('/api/users/-', 'Expect: 200-maybe\r\n'), 200],
  [
    'an Idempotency-Key of bytes',
    post(
      'Idempotency-Key: \xff\xfe\r\nContent-Length: 26\r\n',
      '{"sid":"x","command":"id"}',
      '/api/remotes/launch',
    ),
    400,
    'invalid_input',
  ],
  [
    'an Idempotency-Key that is too long',
    post(
      `Idempotency-Key: ${'k'.repeat(256)}\r\nContent-Length: 26\r\n`,
      '{"sid":"x","command":"id"}',
      '/api/remotes/launch',
    ),
    400,
    'invalid_input',
  ],
];

const LENGTHS: Case[] = [
  [
    'two that differ',
    post('Content-Length: 2\r\nContent-Length: 3\r\n', '{} '),
    400,
    'bad_request',
  ],
  ['two in one', post('Content-Length: 2, 2\r\n', '{}'), 400, 'bad_request'],
  ['a negative one', post('Content-Length: -1\r\n', '{}'), 400, 'bad_request'],
  ['one with a sign', post('Content-Length: +2\r\n', '{}'), 400, 'bad_request'],
  ['a hexadecimal one', post('Content-Length: 0x2\r\n', '{}'), 400, 'bad_request'],
  ['one beyond 2^64', post('Content-Length: 99999999999999999999\r\n', '{}'), 400, 'bad_request'],
  [
    'a length and chunks',
    post('Content-Length: 2\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n'),
    400,
    'bad_request',
  ],
  [
    'chunks and a length',
    post('Transfer-Encoding: chunked\r\nContent-Length: 2\r\n', '0\r\n\r\n'),
    400,
    'bad_request',
  ],
  [
    'an encoding after chunks',
    post('Transfer-Encoding: chunked, identity\r\n', '0\r\n\r\n'),
    400,
    'bad_request',
  ],
  [
    'an encoding that is none',
    post('Transfer-Encoding: xchunked\r\n', '0\r\n\r\n'),
    400,
    'bad_request',
  ],
  [
    'an encoding that nobody knows, before chunks',
    post('Transfer-Encoding: nonsense, chunked\r\n', '0\r\n\r\n', '/events/x'),
    400,
    'bad_request',
  ],
  [
    'a compression before chunks',
    post('Transfer-Encoding: gzip, chunked\r\n', '0\r\n\r\n', '/events/x'),
    400,
    'bad_request',
  ],
  [
    'a compression and chunks in two fields',
    post('Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n', '/events/x'),
    400,
    'bad_request',
  ],
  [
    'chunks in HTTP/1.0',
    post('Transfer-Encoding: chunked\r\n', '0\r\n\r\n', '/events/x').replace('/1.1', '/1.0'),
    400,
    'bad_request',
  ],
  ['a chunk without a size', chunked('zz\r\n{}\r\n0\r\n\r\n'), 400, 'bad_request'],
  ['a chunk of a negative size', chunked('-2\r\n{}\r\n0\r\n\r\n'), 400, 'bad_request'],
  [
    'a chunk of too many digits',
    chunked('fffffffffffffffff\r\n{}\r\n0\r\n\r\n'),
    400,
    'bad_request',
  ],
  ['a chunk longer than it says', chunked('1\r\n{}\r\n0\r\n\r\n'), 400, 'bad_request'],
  [
    'a chunk with an endless extension',
    chunked(`2;${'x'.repeat(40_000)}\r\n{}\r\n0\r\n\r\n`),
    400,
    'bad_request',
  ],
];

const METHODS: Case[] = [
  ...['TRACE', 'PATCH', 'PROPFIND', 'OPTIONS', 'LOCK', 'PURGE'].map(
    (method): Case => [
      method,
      `${method} /api/projects HTTP/1.1\r\nHost: x\r\nAUTHNAME\r\n`,
      405,
      'method_not_allowed',
    ],
  ),
  ['one that nobody knows', 'BREW /api/projects HTTP/1.1\r\nHost: x\r\n\r\n', 400, 'bad_request'],
  ['in lower case', 'get /api/projects HTTP/1.1\r\nHost: x\r\n\r\n', 400, 'bad_request'],
  ['OPTIONS *', 'OPTIONS * HTTP/1.1\r\nHost: x\r\nAUTHNAME\r\n', 404],
];

describeStack(undefined, 'hostile requests', form => {
  const stack = useStarted(() => form.start({ env: { LOG_LEVEL: 'debug' } }));
  let authorization: string;
  let count = 0;
  const answered: string[] = [];

  beforeAll(async () => {
    authorization = `Authorization: Basic ${btoa(`${stack.username}:${stack.password}`)}\r\n`;
  });

  const fill = (bytes: string | Buffer, id: string) =>
    bytes
      .toString('latin1')
      .replace('AUTH', () => authorization)
      .replace('NAME', () => `X-Request-Id: ${id}\r\n`);

  /** Sends it, and holds the answer against what every answer must be. */
  async function attack(connection: RawConnection, bytes: string | Buffer): Promise<RawAnswer> {
    connection.write(fill(bytes, `hostile-${++count}`));
    const answer = await connection.next();
    if (!answer) throw new Error('The server closed without an answer.');
    const id = answer.headers['x-request-id'];
    expect(id, JSON.stringify(answer)).toMatch(/^[\w-]{8,}$/);
    answered.push(id ?? '');
    expect(answer.headers['x-content-type-options']).toBe('nosniff');
    expect(answer.headers['content-security-policy']).toContain("frame-ancestors 'none'");
    if (answer.status < 400) return answer;
    expect(answer.headers['content-type']).toBe('application/problem+json; charset=utf-8');
    const problem = JSON.parse(answer.body) as Problem;
    expect(problem).toMatchObject({
      type: `/api/docs#${problem.code}`,
      status: answer.status,
      title: expect.any(String),
      detail: expect.any(String),
      requestId: id,
    });
    expect(answer.headers['x-service-message']).toMatch(/^[\x20-\x7e]+$/);
    return answer;
  }

  /** The connection answers the next request as its own, or is closed with nothing more said. */
  async function expectSane(connection: RawConnection, answer: RawAnswer): Promise<void> {
    if (answer.headers.connection === 'close') {
      expect(await connection.closed()).toBe('');
      return;
    }
    const id = `probe-${++count}`;
    connection.write(fill(get('/api/users/-'), id));
    const next = await connection.next();
    expect([next?.status, next?.headers['x-request-id']]).toEqual([200, id]);
    expect(JSON.parse(next?.body ?? '')).toMatchObject({ username: stack.username });
  }

  for (const [group, cases] of Object.entries({
    targets: TARGETS,
    'header fields': HEADS,
    lengths: LENGTHS,
    methods: METHODS,
  })) {
    test.each(cases)(`${group}: %s`, async (_name, bytes, status, code) => {
      const connection = new RawConnection(stack.url);
      const answer = await attack(connection, bytes);
      expect([answer.status, answer.body.slice(0, 300)]).toEqual([status, expect.any(String)]);
      if (code) expect(JSON.parse(answer.body)).toMatchObject({ code });
      await expectSane(connection, answer);
      connection.end();
    });
  }

  test('what follows an error on the same connection is answered in its turn, and after a broken one not at all', async () => {
    const connection = new RawConnection(stack.url);
    const bad = post('Content-Length: 1\r\n', '{');
    connection.write(fill(bad, 'first-of-three') + fill(get('/api/jobs/x'), 'second-of-three'));
    connection.write(fill(get('/api/users/-'), 'third-of-three'));
    const statuses = [];
    for (const id of ['first', 'second', 'third']) {
      const answer = await connection.next();
      statuses.push(answer?.status);
      expect(answer?.headers['x-request-id']).toBe(`${id}-of-three`);
    }
    expect(statuses).toEqual([400, 404, 200]);
    const broken = post('Content-Length: 2\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n');
    connection.write(fill(broken, 'broken') + fill(get('/api/users/-'), 'smuggled'));
    expect((await connection.next())?.status).toBe(400);
    expect(await connection.closed()).toBe('');
    expect(stack.log()).not.toContain('smuggled');
  });

  test('an ambiguous request is answered while its body comes, and the rest of that is read', async () => {
    const connection = new RawConnection(stack.url);
    const piece = `10000\r\n${'x'.repeat(0x1_0000)}\r\n`;
    const answer = await attack(connection, post('Transfer-Encoding: gzip, chunked\r\n', piece));
    expect(answer.status).toBe(400);
    for (let n = 0; n < 64; n++) connection.write(piece);
    connection.write('0\r\n\r\n');
    await connection.closed();
    expect(connection.wasReset).toBe(false);
  });

  test('a body that says it is too large is refused before it comes', async () => {
    const connection = new RawConnection(stack.url);
    const answer = await attack(connection, post('Content-Length: 9007199254740991\r\n', '{}'));
    expect(answer.status).toBe(413);
    expect(JSON.parse(answer.body)).toMatchObject({ code: 'payload_too_large' });
    // All that follows would be the body.
    connection.end();
  });

  test('a request id that would break a line or a header is replaced', async () => {
    for (const given of ['a b', '"a"', 'a\tb', 'x'.repeat(129), '\xff', '<script>', 'a,b', '']) {
      const connection = new RawConnection(stack.url);
      connection.write(
        `GET /api/users/- HTTP/1.1\r\nHost: x\r\n${authorization}X-Request-Id: ${given}\r\n\r\n`,
      );
      const answer = await connection.next();
      expect(answer?.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
      answered.push(answer?.headers['x-request-id'] ?? '');
      connection.end();
    }
  });

  test('CONNECT and an upgrade lead nowhere', async () => {
    const tunnel = new RawConnection(stack.url);
    tunnel.write('CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: x\r\n\r\n');
    expect(await tunnel.closed()).not.toMatch(/^HTTP\/1\.1 2/);
    const upgrade = new RawConnection(stack.url);
    const head = 'Connection: Upgrade\r\nUpgrade: websocket\r\n';
    upgrade.write(fill(get('/api/users/-', head), 'upgrade'));
    expect((await upgrade.next())?.status).toBe(200);
    upgrade.end();
  });

  test('each of these requests is one line of the log, and every line is whole', async () => {
    const lines = () => stack.log().split('\n').filter(Boolean);
    const of = (id: string) => lines().filter(line => line.includes(`"requestId":"${id}"`));
    expect(answered.length).toBeGreaterThan(60);
    for (const id of answered) {
      await waitFor(() => of(id).length > 0, { what: `the line of request ${id}` });
      expect(of(id), id).toHaveLength(1);
    }
    for (const line of lines().filter(text => text.startsWith('{'))) {
      expect(() => JSON.parse(line), line).not.toThrow();
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
      expect(line).not.toMatch(/[\0-\x1f\x7f]/);
    }
  });
});
