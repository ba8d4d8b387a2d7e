import { beforeAll, expect, test } from 'vitest';
import { expectNoFrame } from '../harness/clients/no-frame.ts';
import { type RawAnswer, RawConnection } from '../harness/clients/raw-http.ts';
import { beginUpload, makeModel, partPath, readUpload } from '../harness/clients/uploads.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack } from '../harness/stacks/use-stack.ts';

const LIMITS = {
  LIMIT_BODY_BYTES: '100000',
  LIMIT_VALUE_BYTES: '200000',
  LIMIT_PART_BYTES: '300000',
  LIMIT_BODY_SECONDS: '2',
};
const PIECE = 'x'.repeat(20_000);
const JSON_TYPE = 'application/json';
const FORM = 'application/x-www-form-urlencoded';

describeStack(undefined, 'bodies without end', form => {
  const { stack, client } = useStack(form, { env: LIMITS });
  let pid: string;
  let mid: string;
  let uid: string;

  beforeAll(async () => {
    ({ pid, mid } = await makeModel(client));
    uid = await beginUpload(client, mid, ['a']);
  });

  /** The address, the type and the beginning of the body of each kind of request that has one. */
  const bodies = (): [string, string, string, string][] => [
    ['POST', '/api/projects', JSON_TYPE, '{"name":"endless","description":"'],
    ['PUT', `/api/models/${mid}/parameters/endless`, JSON_TYPE, '{"value":"'],
    ['POST', `/api/projects/${pid}/bookmarks`, JSON_TYPE, '{"value":"'],
    ['POST', '/api/login', JSON_TYPE, '{"username":"'],
    ['POST', '/api/login', FORM, 'username='],
    ['POST', '/api/events/endless', 'text/plain', ''],
    ['PUT', partPath(uid, 0, 0), JSON_TYPE, '{"sid":"'],
    ['PUT', partPath(uid, 0, 0), FORM, 'sid='],
    ['PUT', partPath(uid, 0, 0), 'application/octet-stream', ''],
    [
      'PUT',
      partPath(uid, 0, 0),
      'multipart/form-data; boundary=b',
      '--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n',
    ],
  ];
  const open = ([method, path, type, start]: [string, string, string, string], more: string[]) => {
    const connection = new RawConnection(stack.url);
    const fields = [
      'Host: windlass',
      `Authorization: ${client.authorization}`,
      `Content-Type: ${type}`,
      ...more,
    ];
    connection.write(`${method} ${path} HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\n`);
    const sendChunk = (text: string) =>
      text && connection.write(`${text.length.toString(16)}\r\n${text}\r\n`);
    return { connection, sendChunk, start };
  };
  /** Sends this again and again; the answer, and that the connection ends though this never does. */
  const sendWithoutEnd = async (
    connection: RawConnection,
    piece: () => void,
  ): Promise<RawAnswer | undefined> => {
    const timer = setInterval(piece, 10);
    try {
      // The head of a request has 15 s, and that is looked at every 5 s.
      const answer = await connection.next({ timeoutMs: 40_000 });
      await connection.closed();
      return answer;
    } finally {
      clearInterval(timer);
      connection.end();
    }
  };
  const told = (body: [string, string, string, string], answer: RawAnswer | undefined) => [
    `${body[0]} ${body[1]} ${body[2]}`,
    answer?.status,
    (JSON.parse(answer?.body ?? '{}') as { code?: string }).code,
  ];
  const expectNothingKept = async () => {
    const { items } = await client.get<{ items: { name: string }[] }>('/api/projects');
    expect(items.filter(({ name }) => name === 'endless')).toEqual([]);
    expect((await client.fetch(`/api/models/${mid}/parameters/endless`)).status).toBe(404);
    expect((await readUpload(client, uid)).parts).toEqual([]);
  };

  test('one that passes its limit in chunks is 413 at once, and not read to its end', async () => {
    await Promise.all(
      bodies().map(async body => {
        const { connection, sendChunk, start } = open(body, ['Transfer-Encoding: chunked']);
        sendChunk(start);
        const answer = await sendWithoutEnd(connection, () => sendChunk(PIECE));
        const [what] = told(body, answer);
        expect(told(body, answer)).toEqual([what, 413, 'payload_too_large']);
      }),
    );
    await expectNothingKept();
  });

  test('one in pieces of a byte is refused before they take up the memory', async () => {
    const { connection } = open(bodies()[3] as [string, string, string, string], [
      'Transfer-Encoding: chunked',
    ]);
    connection.write('1\r\n \r\n'.repeat(50_000));
    expect(await connection.next()).toMatchObject({ status: 400 });
    connection.end();
  });

  test('one that drips is 408, and its connection ends', { timeout: 60_000 }, async () => {
    const dripping = bodies().filter(([, path]) => !path.includes('/parts/'));
    await Promise.all(
      dripping.map(async body => {
        const { connection, start } = open(body, ['Content-Length: 16000']);
        connection.write(start);
        const answer = await sendWithoutEnd(connection, () => connection.write('x'));
        const [what] = told(body, answer);
        expect(told(body, answer)).toEqual([what, 408, 'request_timeout']);
        expectNoFrame({ headers: new Headers(answer?.headers) }, `${what}`);
      }),
    );
    await expectNothingKept();
  });

  test('a part that drips is 408 as soon as any other body, and told by which setting', async () => {
    const parts = bodies().filter(([, path]) => path.includes('/parts/'));
    await Promise.all(
      parts.map(async body => {
        const { connection, start } = open(body, ['Content-Length: 16000']);
        connection.write(start);
        const answer = await sendWithoutEnd(connection, () => connection.write('x'));
        const [what] = told(body, answer);
        expect(told(body, answer)).toEqual([what, 408, 'request_timeout']);
        expect([what, answer?.headers['x-service-hint']]).toEqual([
          what,
          expect.stringContaining('LIMIT_BODY_SECONDS (2)'),
        ]);
      }),
    );
    await expectNothingKept();
  });

  test('one that comes to its end after its 408 is not carried out', async () => {
    const kept = bodies().filter(
      ([, path, type]) => type === JSON_TYPE && !path.includes('/parts/'),
    );
    await Promise.all(
      kept.map(async body => {
        const { connection, start } = open(body, [`Content-Length: ${body[3].length + 2}`]);
        connection.write(start);
        const answer = await connection.next({ timeoutMs: 40_000 });
        connection.write('"}');
        await connection.closed();
        connection.end();
        const [what] = told(body, answer);
        expect(told(body, answer)).toEqual([what, 408, 'request_timeout']);
      }),
    );
    await expectNothingKept();
    expect(stack.log()).not.toContain('ERR_HTTP_HEADERS_SENT');
  });

  // It takes its time, and is the HTTP server's own, whatever is behind it.
  if (form.name === 'embedded')
    test('header fields that drip are 408, and their connection ends', {
      timeout: 60_000,
    }, async () => {
      const connection = new RawConnection(stack.url);
      connection.write('GET /api/jobs HTTP/1.1\r\nHost: windlass\r\nX-Long: ');
      const answer = await sendWithoutEnd(connection, () => connection.write('x'));
      expect(answer?.status).toBe(408);
      expectNoFrame({ headers: new Headers(answer?.headers) });
    });
});
