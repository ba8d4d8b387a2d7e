import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, expect, test, vi } from 'vitest';
import { makeTempDir } from '../../../test/harness/files/temp-dir.ts';
import { describeUnless, missingPrograms } from '../../../test/harness/skip.ts';
import { createApi, unwrap } from './api.ts';
import type { WindlassError } from './error.ts';
import { Follow } from './follow.ts';
import { listDirectory } from './host-files.ts';
import { type ConnectionOptions, Http } from './http.ts';
import { cancelJob, waitForEnd } from './jobs.ts';
import { filePath } from './put-file.ts';

type Answer = (req: IncomingMessage, res: ServerResponse) => void;

interface Asked {
  method?: string;
  url?: string;
  headers: IncomingMessage['headers'];
  body: string;
}

let server: Server;
let asked: Asked[];
let answers: Answer[];
let retries: { error: WindlassError; seconds: number }[];

beforeEach(async () => {
  [asked, answers, retries] = [[], [], []];
  server = createServer(async (req, res) => {
    let body = '';
    for await (const piece of req.setEncoding('utf8')) body += piece;
    asked.push({ method: req.method, url: req.url, headers: req.headers, body });
    const answer = answers.shift() ?? json(200, { items: [], next: null });
    answer(req, res);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterEach(() => {
  server.close().closeAllConnections();
});

const json =
  (status: number, body: object, headers: Record<string, string> = {}): Answer =>
  (_req, res) =>
    res
      .writeHead(status, { 'Content-Type': 'application/json', ...headers })
      .end(JSON.stringify(body));
const cut: Answer = (_req, res) => res.destroy();
/** The head says more than comes. */
const cutInBody: Answer = (_req, res) => {
  const head = { 'Content-Type': 'application/json', 'Content-Length': '100' };
  res.writeHead(200, head).write('{"items":', () => res.destroy());
};

function connect(options: Partial<ConnectionOptions> = {}) {
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}/base/`;
  const http = new Http({
    url,
    token: 'secret',
    onRetry: retry => retries.push(retry),
    ...options,
  });
  return { http, api: createApi(http) };
}
const launch = { body: { sid: 's', command: 'true' } };

test('a GET is sent again where its answer is lost, in the middle too, or the service is unreachable', async () => {
  answers = [cut, cutInBody];
  const { api } = connect();
  expect(
    await unwrap(api.GET('/api/jobs', { params: { query: { kind: ['command', 'video'] } } })),
  ).toEqual({
    items: [],
    next: null,
  });
  expect(asked).toHaveLength(3);
  expect(new Set(asked.map(({ url }) => url))).toEqual(
    new Set(['/base/api/jobs?kind=command&kind=video']),
  );
  expect(asked[0]?.headers.authorization).toBe('Bearer secret');
  for (const status of [503, 502, 504, 408, 522]) {
    answers = [json(status, {})];
    await unwrap(api.GET('/api/jobs'));
  }
  expect(retries.map(({ error }) => error.status)).toEqual([0, 0, 503, 502, 504, 408, 522]);
});

test('what starts a job is sent again under its key, with its body', async () => {
  answers = [cut, json(503, {}), json(202, { id: 'job' })];
  const { api } = connect();
  await unwrap(api.POST('/api/remotes/launch', launch));
  expect(asked.map(({ body }) => JSON.parse(body))).toEqual([
    launch.body,
    launch.body,
    launch.body,
  ]);
  const keys = asked.map(({ headers }) => headers['idempotency-key']);
  expect(keys).toEqual([keys[0], keys[0], keys[0]]);
  expect(keys[0]).toMatch(/^[0-9a-f]{32}$/);
  await unwrap(api.POST('/api/remotes/launch', launch));
  expect(asked[3]?.headers['idempotency-key']).not.toBe(keys[0]);
  const header = { 'Idempotency-Key': 'mine' };
  await unwrap(api.POST('/api/remotes/launch', { ...launch, params: { header } }));
  expect(asked[4]?.headers['idempotency-key']).toBe('mine');
});

test('other writes are sent once, but for what the service has refused to look at', async () => {
  const { api } = connect();
  const body = { name: 'p' };
  answers = [cut];
  await expect(api.POST('/api/projects', { body })).rejects.toMatchObject({ code: 'unreachable' });
  answers = [json(503, { code: 'unavailable', detail: 'Away.' })];
  await expect(unwrap(api.POST('/api/projects', { body }))).rejects.toMatchObject({ status: 503 });
  expect(asked).toHaveLength(2);
  answers = [json(429, {}, { 'Retry-After': '0' }), json(201, { id: 'p' })];
  expect(await unwrap(api.POST('/api/projects', { body }))).toEqual({ id: 'p' });
  expect(asked).toHaveLength(4);
});

test('the time of requests that nobody answers counts for the patience', async () => {
  const { http } = connect({ patience: 1 });
  answers = Array.from({ length: 10 }, () => () => {});
  const answer = http.request('/api/jobs', {}, { timeoutMs: 500 });
  await expect(answer).rejects.toMatchObject({ code: 'unreachable' });
  expect(asked.length).toBeLessThanOrEqual(2);
});

test('a service that never answered is given up soon, unless patience is asked for', async () => {
  vi.useFakeTimers();
  let isUnreachable = true;
  const fetch = async () => {
    if (isUnreachable) throw new TypeError('refused');
    return Response.json({});
  };
  const secondsOf = async (http: Http) => {
    const begun = performance.now();
    const failed = http.request('/api/jobs', {}).catch((error: WindlassError) => error.code);
    await vi.runAllTimersAsync();
    expect(await failed).toBe('unreachable');
    return (performance.now() - begun) / 1_000;
  };
  try {
    const { http } = connect({ fetch });
    expect(await secondsOf(http)).toBeLessThan(10);
    isUnreachable = false;
    await http.request('/api/jobs', {});
    isUnreachable = true;
    expect(await secondsOf(http)).toBeGreaterThan(100);
    expect(await secondsOf(connect({ fetch, patience: 60 }).http)).toBeGreaterThan(50);
  } finally {
    vi.useRealTimers();
  }
});

test('who has no end of patience asks again, whatever an answer says of when to', async () => {
  vi.useFakeTimers();
  try {
    for (const asked of ['3600', '3000000', 'Fri, 31 Dec 9999 23:59:59 GMT']) {
      let count = 0;
      const fetch = async () => {
        count++;
        return Response.json({}, { status: 503, headers: { 'Retry-After': asked } });
      };
      const stop = new AbortController();
      const sending = { patience: Infinity, signal: stop.signal };
      const failed = expect(connect({ fetch }).http.request('/api/jobs', {}, sending)).rejects;
      await vi.advanceTimersByTimeAsync(600_500);
      stop.abort(new Error('It was watched for ten minutes.'));
      await failed.toThrow('ten minutes');
      expect([asked, count]).toEqual([asked, 11]);
    }
  } finally {
    vi.useRealTimers();
  }
});

test('what was certainly not sent is sent again, whatever it is', async () => {
  const refused = new TypeError('fetch failed', {
    cause: Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }),
  });
  let failures = 0;
  const fetch = async (request: Parameters<typeof globalThis.fetch>[0]) => {
    if (++failures < 3) throw refused;
    return globalThis.fetch(request);
  };
  await connect({ fetch }).api.POST('/api/projects', { body: { name: 'p' } });
  expect(asked.map(({ body }) => JSON.parse(body))).toEqual([{ name: 'p' }]);
  failures = 0;
  const once = connect({ fetch }).http.request('/api/jobs', {}, { isRepeatable: false });
  await expect(once).rejects.toMatchObject({ code: 'unreachable' });
  expect(asked).toHaveLength(1);
});

test('what is no id is refused, and asked of nobody', async () => {
  const { http, api } = connect();
  const connection = { http, api };
  for (const id of ['', '.', '..'])
    for (const ask of [
      () => waitForEnd(connection, id),
      () => cancelJob(connection, id),
      () =>
        api.GET('/api/models/{mid}/tables/{aid}/rows', { params: { path: { mid: 'm', aid: id } } }),
      () => new Follow(http, Promise.resolve(id), {}).chunks().next(),
      () => listDirectory(connection, { session: { sid: id } as never, path: '/' }),
      async () => filePath(id, '/tmp/a'),
    ])
      await expect(ask()).rejects.toMatchObject({ code: 'no_id', detail: `"${id}" is no id.` });
  expect(asked).toEqual([]);
  await api.GET('/api/models/{mid}/tables/{aid}/rows', {
    params: { path: { mid: '...', aid: 'a/b {mid} %2F' } },
  });
  expect(asked[0]?.url).toBe('/base/api/models/.../tables/a%2Fb%20%7Bmid%7D%20%252F/rows');
});

test('Retry-After is waited for, unless it is longer than the patience', async () => {
  const { api } = connect({ patience: 2 });
  answers = [json(429, {}, { 'Retry-After': '1' })];
  const begin = performance.now();
  await unwrap(api.GET('/api/jobs'));
  expect(performance.now() - begin).toBeGreaterThan(990);
  answers = [json(429, { code: 'too_many_requests', detail: 'Later.' }, { 'Retry-After': '3' })];
  await expect(unwrap(api.GET('/api/jobs'))).rejects.toMatchObject({
    status: 429,
    detail: 'Later.',
  });
  answers = [json(503, {}, { 'Retry-After': new Date(Date.now() + 60_000).toUTCString() })];
  await expect(unwrap(api.GET('/api/jobs'))).rejects.toMatchObject({ status: 503 });
  expect(asked).toHaveLength(4);
});

test('an error has what the service, or a proxy before it, says', async () => {
  const { api, http } = connect();
  const problem = {
    type: '/api/docs#invalid_input',
    title: 'Invalid parameters',
    status: 400,
    detail: 'Invalid parameters: limit.',
    code: 'invalid_input',
    hint: 'Give a number.',
    requestId: 'r',
    fields: [{ field: 'limit', problem: 'must be a number' }],
  };
  answers = [json(400, problem), json(400, problem)];
  const { detail, code, hint, requestId } = problem;
  const expected = { name: 'WindlassError', status: 400, detail, code, hint, requestId, problem };
  for (const failing of [unwrap(api.GET('/api/jobs')), http.request('/api/jobs', {})])
    await expect(failing).rejects.toMatchObject(expected);
  answers = [(_req, res) => res.writeHead(413, { 'X-Service-Hint': 'Less.' }).end('<html>')];
  await expect(unwrap(api.GET('/api/jobs'))).rejects.toMatchObject({
    status: 413,
    code: 'http_413',
    hint: 'Less.',
    detail: 'The answer was 413 Payload Too Large.',
  });
  answers = [(_req, res) => res.writeHead(404).end('<html>')];
  await expect(unwrap(api.GET('/api/jobs'))).rejects.toMatchObject({
    hint: expect.stringContaining('such as a proxy'),
  });
  answers = [(_req, res) => res.writeHead(404, { 'X-Service-Message': 'None.' }).end()];
  await expect(unwrap(api.GET('/api/jobs'))).rejects.toMatchObject({
    detail: 'None.',
    hint: undefined,
  });
});

test('waiting for a job asks for its next change, and goes on where that does not come', async () => {
  const job = { id: 'j', state: 'running', finished: null };
  const ended = { ...job, state: 'failed', finished: '2026-01-01T00:00:00Z' };
  answers = [
    json(200, job, { ETag: '"1"' }),
    (_req, res) => res.writeHead(304, { 'Content-Type': 'application/json' }).end(),
    cutInBody,
    json(200, ended, { ETag: '"2"' }),
  ];
  const states: string[] = [];
  const onChange = ({ state }: { state: string }) => states.push(state);
  expect(await waitForEnd(connect(), 'j', { onChange })).toEqual(ended);
  expect(states).toEqual(['running', 'failed']);
  const conditions = asked.map(({ headers }) => [headers['if-none-match'], headers.prefer]);
  const poll = ['"1"', 'wait=25'];
  expect(conditions).toEqual([[undefined, undefined], poll, poll, poll]);
});

test.each<[string, Answer]>([
  ['without a tag', json(200, { id: 'j', state: 'running', finished: null })],
  [
    'with a tag that the service has not given',
    json(200, { id: 'j', state: 'running', finished: null }, { ETag: '"1-gzip"' }),
  ],
  ['that is not held', (_req, res) => res.writeHead(304).end()],
])('an answer %s has no flood of questions follow', async (_what, answer) => {
  const first = json(200, { id: 'j', state: 'running', finished: null }, { ETag: '"1"' });
  answers = [first, ...Array.from({ length: 10_000 }, () => answer)];
  const stop = AbortSignal.timeout(1_000);
  await expect(waitForEnd(connect(), 'j', { signal: stop })).rejects.toThrow('timeout');
  expect(asked.length).toBeLessThan(10);
});

test('a page that a proxy answers instead of the service is an error, nothing is not', async () => {
  const page: Answer = (_req, res) =>
    res.writeHead(200, { 'Content-Type': 'text/html' }).end('<form>Log in</form>');
  const { http, api } = connect();
  answers = [page, page];
  for (const asking of [unwrap(api.GET('/api/jobs')), waitForEnd({ http, api }, 'j')])
    await expect(asking).rejects.toMatchObject({
      name: 'WindlassError',
      code: 'foreign_answer',
      detail: expect.stringMatching(/^127\.0\.0\.1:\d+ answered with (no JSON|HTML)\.$/),
    });
  answers = [(_req, res) => res.writeHead(200, { 'Content-Type': 'text/plain' }).end()];
  expect(await unwrap(api.GET('/api/jobs'))).toBeUndefined();
});

test('only a GET is sent where an answer says to ask instead, without credentials if that is elsewhere', async () => {
  const { http, api } = connect();
  const { port } = server.address() as AddressInfo;
  const away = (at: string) => json(307, {}, { Location: at });
  const elsewhere = `http://localhost:${port}/other`;
  const writes = [
    () =>
      unwrap(api.POST('/api/remotes', { body: { hostname: 'h', username: 'ada', password: 'x' } })),
    () => unwrap(api.POST('/api/remotes/launch', launch)),
    () => cancelJob({ http, api }, 'j'),
    () => http.request('/api/uploads/u', { method: 'PUT', body: 'bytes' }),
  ];
  for (const write of writes)
    for (const at of [elsewhere, '/other']) {
      answers = [away(at)];
      await expect(write()).rejects.toMatchObject({
        code: 'foreign_answer',
        status: 307,
        detail: `What answers at ${http.base} is not Windlass. It says to ask ${at} instead.`,
      });
    }
  expect(asked.filter(({ url }) => url === '/other')).toEqual([]);
  answers = [away(elsewhere), (_req, res) => res.end('video')];
  expect(await (await http.request('/api/jobs/v/result', {})).text()).toBe('video');
  expect(asked.at(-1)?.url).toBe('/other');
  expect(asked.at(-1)?.headers.authorization).toBeUndefined();
});

test('JSON from elsewhere is not the answer of the service', async () => {
  const { port } = server.address() as AddressInfo;
  const elsewhere = `http://localhost:${port}/other`;
  const { http, api } = connect();
  for (const asking of [() => unwrap(api.GET('/api/jobs')), () => waitForEnd({ http, api }, 'j')]) {
    answers = [json(307, {}, { Location: elsewhere })];
    await expect(asking()).rejects.toMatchObject({
      code: 'foreign_answer',
      detail: `What answers at ${http.base} is not Windlass. It says to ask ${elsewhere} instead.`,
    });
  }
});

test('a cancellation whose answer is lost is asked for again', async () => {
  answers = [cut, json(202, { id: 'j' })];
  expect(await cancelJob(connect(), 'j')).toBe(true);
  expect(asked.map(({ method, url }) => `${method} ${url}`)).toEqual(
    Array(2).fill('DELETE /base/api/jobs/j'),
  );
});

test('a signal ends a request, and the time until it is sent again', async () => {
  const { api } = connect();
  const stop = new AbortController();
  answers = [() => stop.abort(new Error('stop'))];
  await expect(api.GET('/api/jobs', { signal: stop.signal })).rejects.toThrow('stop');
  const later = new AbortController();
  answers = [json(503, {}, { 'Retry-After': '30' })];
  const { api: told } = connect({ onRetry: () => later.abort(new Error('later')) });
  await expect(told.GET('/api/jobs', { signal: later.signal })).rejects.toThrow('later');
  expect(asked).toHaveLength(2);
  await expect(
    api.GET('/api/jobs', { signal: AbortSignal.abort(new Error('no')) }),
  ).rejects.toThrow('no');
  expect(asked).toHaveLength(2);
});

test('an answer that does not begin in time is asked for again', async () => {
  answers = [() => {}];
  const { http } = connect();
  expect((await http.request('/api/jobs', {}, { timeoutMs: 200 })).status).toBe(200);
  expect(retries[0]?.error.detail).toContain('no answer within 0.2 s');
});

test('credentials are a token, what gives one, user and password, or the cookies of the page', async () => {
  let made = 0;
  await connect({ token: async () => `token ${++made}` }).api.GET('/api/jobs');
  await connect({ token: undefined, user: 'ada', password: 'pässwörd:1' }).api.GET('/api/jobs');
  await connect({ token: undefined }).api.GET('/api/jobs');
  expect(asked.map(({ headers }) => [headers.authorization, headers['x-requested-with']])).toEqual([
    ['Bearer token 1', undefined],
    [`Basic ${Buffer.from('ada:pässwörd:1').toString('base64')}`, undefined],
    [undefined, 'windlass'],
  ]);
});

test.each([
  ['/', '/'],
  [undefined, ''],
  ['', ''],
  ['windlass.example.org:8080', 'windlass.example.org:8080'],
  ['ftp://windlass.example.org', 'ftp://windlass.example.org'],
])('%s is no address where there is no page', (url, said) => {
  expect(() => new Http({ url: url as string })).toThrow(
    expect.objectContaining({ code: 'no_url', detail: `"${said}" is no address.` }),
  );
});

test('an event has the path and the query that it was given', async () => {
  const { api } = connect();
  for (const [event, query] of [
    ['select/row/17', { table: 'a/b', rows: 2 }],
    ['a b/ü', undefined],
    ['up/../down', undefined],
  ] as const)
    await api.POST('/api/events/{event}', { params: { path: { event }, query: { query } } });
  expect(asked.map(({ url }) => url)).toEqual([
    '/base/api/events/select/row/17?table=a%2Fb&rows=2',
    '/base/api/events/a%20b/%C3%BC',
    '/base/api/events/%2Fup%2F..%2Fdown',
  ]);
});

test('a port that speaks no TLS is told as such, and not asked again', async () => {
  const { port } = server.address() as AddressInfo;
  const { http } = connect({ url: `https://127.0.0.1:${port}` });
  await expect(http.request('/api/jobs', {})).rejects.toMatchObject({
    code: 'unreachable',
    detail: `No answer from 127.0.0.1:${port}: it speaks no TLS.`,
  });
  expect(retries).toEqual([]);
});

describeUnless(missingPrograms('openssl'), 'a certificate that nobody trusts', () => {
  const folder = makeTempDir('certificate');
  afterAll(() => folder.remove());

  test('is told as such, and not asked again', async () => {
    const [key, certificate] = [join(folder.path, 'key.pem'), join(folder.path, 'cert.pem')];
    execFileSync(
      'openssl',
      [
        ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'],
        ...['-days', '1', '-subj', '/CN=windlass.test', '-keyout', key, '-out', certificate],
      ],
      { stdio: 'ignore' },
    );
    const options = { key: readFileSync(key), cert: readFileSync(certificate) };
    const secure = createSecureServer(options).listen(0, '127.0.0.1');
    await once(secure, 'listening');
    const { port } = secure.address() as AddressInfo;
    const { http } = connect({ url: `https://127.0.0.1:${port}` });
    await expect(http.request('/api/jobs', {})).rejects.toMatchObject({
      code: 'unreachable',
      hint: expect.stringContaining('NODE_EXTRA_CA_CERTS'),
    });
    expect(retries).toEqual([]);
    secure.close();
  });
});
