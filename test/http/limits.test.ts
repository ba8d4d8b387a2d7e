import { statfsSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Client } from '../../servers/api-client.ts';
import { newId } from '../../shared/ids.ts';
import { expectProblem, type Problem } from '../harness/clients/problem.ts';
import { addUsers } from '../harness/clients/projects.ts';
import { RawConnection } from '../harness/clients/raw-http.ts';
import { startParse, utf8 } from '../harness/clients/tables.ts';
import { TusClient } from '../harness/clients/tus.ts';
import {
  beginUpload,
  finishUpload,
  makeModel,
  partPath,
  putPart,
  readUpload,
  someBytes,
} from '../harness/clients/uploads.ts';
import { drawFrames } from '../harness/files/draw-frames.ts';
import { openSession, waitForEnd } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { startStack } from '../harness/stacks/stack.ts';
import { useRemoteStack, useStack, useStackDatabase } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const PROJECT_BYTES = 100_000;
const LIMITS = {
  LIMIT_HEADER_BYTES: '16384',
  LIMIT_BODY_BYTES: '4096',
  LIMIT_VALUE_BYTES: '8192',
  LIMIT_PART_BYTES: '50000',
  LIMIT_JSON_DEPTH: '10',
  LIMIT_JSON_MEMBERS: '40',
  LIMIT_LIST_ITEMS: '20',
  LIMIT_NAME_LENGTH: '24',
  LIMIT_KEY_LENGTH: '24',
  LIMIT_PROJECT_BYTES: String(PROJECT_BYTES),
};
const LONG = 'a name of 25 characters!!';

describeStack(missingPrograms('sshd', 'ffmpeg'), 'limits', form => {
  const { stack, client, sshd } = useRemoteStack(form, { env: LIMITS });
  let sid: string;
  let images: string[];

  beforeAll(async () => {
    sid = await openSession(client, sshd);
    images = await drawFrames({ folder: join(sshd.home, 'frames'), count: 3 });
  });

  const send = (method: string, path: string, body: unknown) =>
    client.fetch(path, { method, body: JSON.stringify(body) });
  /** Refused as this, and told by which setting, at which number. */
  const expectLimit = async (
    answer: Response,
    [status, code]: [number, string],
    setting: keyof typeof LIMITS,
  ): Promise<Problem> => {
    const problem = await expectProblem(answer, status, code);
    expect(problem.hint).toContain(setting);
    expect(`${problem.detail} ${problem.hint}`).toContain(LIMITS[setting]);
    return problem;
  };
  /** A body without a length. */
  const inChunks = (bytes: Uint8Array) => ({
    body: Readable.toWeb(Readable.from([bytes])) as ReadableStream,
    duplex: 'half' as const,
  });
  const putParameter = (mid: string, aid: string, text: string) =>
    send('PUT', `/api/models/${mid}/parameters/${aid}`, { value: text });

  test('bodies: 413', async () => {
    const TOO_LARGE: [number, string] = [413, 'payload_too_large'];
    const { pid, mid } = await makeModel(client);
    const description = 'x'.repeat(4_096);
    const json = { 'Content-Type': 'application/json' };
    const chunked = inChunks(utf8(JSON.stringify({ name: 'x', description })));
    for (const answer of [
      await send('POST', '/api/projects', { name: 'x', description }),
      await client.fetch('/api/projects', { method: 'POST', headers: json, ...chunked }),
      await send('POST', '/api/login', { username: 'x', password: description }),
    ])
      await expectLimit(answer, TOO_LARGE, 'LIMIT_BODY_BYTES');
    expect(
      (await send('POST', '/api/projects', { name: 'x', description: 'x'.repeat(4_000) })).status,
    ).toBe(201);

    const value = 'x'.repeat(8_192);
    for (const answer of [
      await putParameter(mid, 'a', value),
      await send('POST', `/api/projects/${pid}/bookmarks`, { value }),
      await send('POST', '/api/events/select', { value }),
    ])
      await expectLimit(answer, TOO_LARGE, 'LIMIT_VALUE_BYTES');
    expect((await putParameter(mid, 'a', 'x'.repeat(8_000))).status).toBe(200);
  });

  test('forms: 413 past 16 KiB; of a part 400 for fields that are too long or too many', async () => {
    const { mid } = await makeModel(client);
    const path = partPath(await beginUpload(client, mid, ['a']), 0, 0);
    const headers = { 'Content-Type': 'application/x-www-form-urlencoded' };
    const put = (body: string) => client.fetch(path, { method: 'PUT', headers, body });
    const long = `sid=${'x'.repeat(16 << 10)}`;
    const login = await client.fetch('/api/login', { method: 'POST', headers, body: long });
    const { hint } = await expectProblem(login, 413, 'payload_too_large');
    expect(hint).toContain('it may have 16384 bytes');
    const many = Array.from({ length: 11 }, (_, i) => `f${i}=x`).join('&');
    for (const [body, field] of [
      [long, 'sid'],
      [many, 'f0'],
    ] as const) {
      const { fields } = await expectProblem(await put(body), 400, 'invalid_input');
      expect(fields?.map(({ field }) => field)).toEqual([field]);
    }
  });

  test('header fields: 431', async () => {
    const answer = await client.fetch('/api/projects', {
      headers: { 'X-Long': 'x'.repeat(17_000) },
    });
    await expectLimit(answer, [431, 'headers_too_large'], 'LIMIT_HEADER_BYTES');
    const headers = { 'X-Long': 'x'.repeat(15_000) };
    expect((await client.fetch('/api/projects', { headers })).status).toBe(200);
  });

  test('depth, members, names, keys and lists: 400, with the field', async () => {
    const WRONG: [number, string] = [400, 'invalid_input'];
    const { pid, mid } = await makeModel(client);
    const nested = (depth: number): unknown => (depth === 0 ? 1 : [nested(depth - 1)]);
    for (const answer of [
      await send('POST', '/api/projects', { name: nested(10) }),
      await send('PUT', `/api/models/${mid}/parameters/a`, { value: nested(10) }),
      await send('POST', `/api/projects/${pid}/bookmarks`, { value: nested(10) }),
    ])
      await expectLimit(answer, WRONG, 'LIMIT_JSON_DEPTH');
    expect(
      (await send('PUT', `/api/models/${mid}/parameters/a`, { value: nested(9) })).status,
    ).toBe(200);

    const names = Array.from({ length: 39 }, (_unused, n) => `N${n}`);
    const env = Object.fromEntries(names.map(name => [name, '']));
    const launch = (more: object) =>
      send('POST', '/api/remotes/launch', { sid, env, command: 'true', ...more });
    await expectLimit(await launch({}), WRONG, 'LIMIT_JSON_MEMBERS');
    await expectLimit(await launch({ env: {}, ...env }), WRONG, 'LIMIT_JSON_MEMBERS');
    delete env.N0;
    delete env.N1;
    expect((await launch({})).status).toBe(200);
    const value = Object.fromEntries(names.map((name, n) => [name, { n }]));
    expect((await send('PUT', `/api/models/${mid}/parameters/b`, { value })).status).toBe(200);

    const video = { 'content-type': 'video/mp4', images, project: pid };
    const readers = Array.from({ length: 21 }, () => ({ user: 'x' }));
    const upload = { mid, input: true, parser: 'blob' };
    const cases: [string, keyof typeof LIMITS, string, string, unknown][] = [
      ['name', 'LIMIT_NAME_LENGTH', 'POST', '/projects', { name: LONG }],
      ['name', 'LIMIT_NAME_LENGTH', 'PUT', `/projects/${pid}`, { name: LONG }],
      [
        'name',
        'LIMIT_NAME_LENGTH',
        'POST',
        `/projects/${pid}/models`,
        { name: LONG, 'model-type': 'x' },
      ],
      [
        'model-type',
        'LIMIT_NAME_LENGTH',
        'POST',
        `/projects/${pid}/models`,
        { name: 'x', 'model-type': LONG },
      ],
      ['name', 'LIMIT_NAME_LENGTH', 'PUT', `/models/${mid}`, { name: LONG }],
      [
        'aid',
        'LIMIT_NAME_LENGTH',
        'PUT',
        `/models/${mid}/parameters/${encodeURIComponent(LONG)}`,
        { value: 1 },
      ],
      ['aids.1', 'LIMIT_NAME_LENGTH', 'POST', '/uploads', { ...upload, aids: ['x', LONG] }],
      ['key', 'LIMIT_KEY_LENGTH', 'POST', `/remotes/${sid}/videos`, { ...video, key: LONG }],
      ['acl.readers', 'LIMIT_LIST_ITEMS', 'POST', '/projects', { name: 'x', acl: { readers } }],
      [
        'aids',
        'LIMIT_LIST_ITEMS',
        'POST',
        '/uploads',
        { ...upload, aids: readers.map((_, i) => `${i}`) },
      ],
    ];
    for (const [field, setting, method, path, body] of cases) {
      const { fields } = await expectLimit(await send(method, `/api${path}`, body), WRONG, setting);
      expect([path, fields?.map(wrong => wrong.field)]).toEqual([path, [field]]);
    }
    const name = LONG.slice(1);
    expect((await send('PUT', `/api/projects/${pid}`, { name })).status).toBe(200);
    expect((await putParameter(mid, encodeURIComponent(name), 'x')).status).toBe(200);
  });

  test('parts: 413, whichever way they come', async () => {
    const { mid } = await makeModel(client);
    const uid = await beginUpload(client, mid, ['a']);
    const path = partPath(uid, 0, 0);
    const bytes = someBytes(50_001);
    const formed = new FormData();
    formed.set('file', new Blob([bytes]));
    const authorized = { headers: { Authorization: client.authorization }, method: 'PUT' };
    for (const answer of [
      await putPart(client, path, bytes),
      await client.fetch(path, {
        method: 'PUT',
        headers: { 'Content-Type': 'application/octet-stream' },
        ...inChunks(bytes),
      }),
      await fetch(`${stack.url}${path}`, { ...authorized, body: formed }),
    ])
      await expectLimit(answer, [413, 'payload_too_large'], 'LIMIT_PART_BYTES');
    expect((await readUpload(client, uid)).parts).toEqual([]);
    expect((await putPart(client, path, bytes.subarray(1))).status).toBe(200);
  });

  test('an upload by tus becomes as many parts as the limit asks for', async () => {
    const { mid } = await makeModel(client);
    const tus = new TusClient(client);
    const bytes = someBytes(90_000);
    const begun = await tus.create(bytes.length, { mid, aid: 'a', parser: 'blob' });
    const path = begun.headers.get('Location') ?? '';
    expect((await tus.patch(path, 0, bytes)).status).toBe(204);
    const { job } = await readUpload(client, path.split('/').at(-1) ?? '');
    expect((await waitForEnd(client, job ?? '')).state).toBe('succeeded');
    const file = await client.getBytes(`/api/models/${mid}/files/a`);
    expect(file.bytes.equals(bytes)).toBe(true);
  });

  describe('bytes of a project: 507', () => {
    const FULL: [number, string] = [507, 'insufficient_storage'];
    const expectFull = (answer: Response) => expectLimit(answer, FULL, 'LIMIT_PROJECT_BYTES');
    /** A project in which there is room for `room` more bytes, and what takes the rest. */
    const makeAlmostFull = async (room: number) => {
      const made = await makeModel(client);
      const filler = await beginUpload(client, made.mid, ['filler']);
      const rest = PROJECT_BYTES - room;
      for (const [part, size] of [50_000, rest - 50_000].entries())
        expect((await putPart(client, partPath(filler, 0, part), someBytes(size))).status).toBe(
          200,
        );
      return { ...made, filler };
    };

    test('a part, before its body is sent where its length is told, else when it has come', async () => {
      const { mid, filler } = await makeAlmostFull(1_000);
      const uid = await beginUpload(client, mid, ['a']);
      const path = partPath(uid, 0, 0);
      const bytes = someBytes(1_001);
      await expectFull(await putPart(client, path, bytes));
      expect(await refusedUnsent(path, 1_001)).toContain('LIMIT_PROJECT_BYTES');
      const headers = { 'Content-Type': 'application/octet-stream' };
      await expectFull(await client.fetch(path, { method: 'PUT', headers, ...inChunks(bytes) }));
      expect((await readUpload(client, uid)).parts).toEqual([]);
      expect((await putPart(client, path, bytes.subarray(1))).status).toBe(200);
      // What replaces as much, or more, takes no room.
      expect((await putPart(client, path, bytes.subarray(1))).status).toBe(200);
      await expectFull(await putPart(client, path, bytes));
      await client.delete(`/api/uploads/${filler}`);
      expect((await putPart(client, path, bytes)).status).toBe(200);
    });

    test('an open upload makes room once its owner may no longer write the project', async () => {
      const { former } = await addUsers(stack, ['former']);
      for (const readers of [[], [{ user: 'former' }]]) {
        const { pid, mid } = await makeModel(client);
        const setAcl = (acl: object) => send('PUT', `/api/projects/${pid}`, { acl });
        expect((await setAcl({ writers: [{ user: 'former' }] })).status).toBe(200);
        const theirs = await beginUpload(former, mid, ['a']);
        const most = someBytes(50_000);
        for (const part of [0, 1])
          expect((await putPart(former, partPath(theirs, 0, part), most)).status).toBe(200);
        const own = await beginUpload(client, mid, ['b']);
        const put = () => putPart(client, partPath(own, 0, 0), most);
        await expectFull(await put());
        expect((await setAcl({ writers: [], readers })).status).toBe(200);
        await waitFor(async () => (await put()).status === 200, {
          what: 'room in the project',
          timeoutMs: 30_000,
        });
        const gone = await former.fetch(`/api/uploads/${theirs}`);
        await expectProblem(gone, 404, 'not_found');
      }
    });

    test('of many parts at once no more are taken than there is room for', async () => {
      const { mid } = await makeModel(client);
      const uid = await beginUpload(client, mid, ['a']);
      const other = await beginUpload(client, mid, ['b']);
      const answers = await Promise.all(
        Array.from({ length: 16 }, (_, part) =>
          putPart(client, partPath(part % 2 ? uid : other, 0, part), someBytes(15_000)),
        ),
      );
      expect(answers.filter(({ status }) => status === 200)).toHaveLength(6);
      expect(answers.filter(({ status }) => status === 507)).toHaveLength(10);
    });

    test('values and bookmarks count, and make room when they go', async () => {
      const { pid, mid } = await makeAlmostFull(8_500);
      const text = 'x'.repeat(8_000);
      const path = `/api/models/${mid}/parameters`;
      expect((await putParameter(mid, 'a', text)).status).toBe(200);
      expect((await putParameter(mid, 'a', text)).status).toBe(200);
      await expectFull(await putParameter(mid, 'b', text));
      await expectFull(await send('POST', `/api/projects/${pid}/bookmarks`, { text }));
      expect((await client.fetch(`${path}/b`)).status).toBe(404);
      await client.delete(`${path}/a`);
      const bookmark = await send('POST', `/api/projects/${pid}/bookmarks`, { text });
      const { id: bid } = (await bookmark.json()) as { id: string };
      expect((await send('POST', `/api/projects/${pid}/bookmarks`, { text })).status).toBe(201);
      await expectFull(await putParameter(mid, 'b', text));
      await client.delete(`/api/bookmarks/${bid}`);
      expect((await putParameter(mid, 'b', text)).status).toBe(200);
      await expectFull(await putParameter(mid, 'c', text));
      await client.delete(`/api/models/${mid}`);
      const anew = await client.post<{ id: string }>(`/api/projects/${pid}/models`, {
        name: 'x',
        'model-type': 'x',
      });
      expect((await putParameter(anew.id, 'c', text)).status).toBe(200);
    });

    test('a parse takes over the bytes of its parts; one that makes more than there is room for fails', async () => {
      const { mid, filler } = await makeAlmostFull(100);
      const finished = await finishUpload(client, filler, [2]);
      const { job } = (await finished.json()) as { job: string };
      expect((await waitForEnd(client, job)).state).toBe('succeeded');
      const files = { table: [utf8('x\n1\n')] };
      const table = await startParse(client, { mid, parser: 'csv', files });
      const { state, error } = await waitForEnd(client, table.job);
      expect([state, error?.code]).toEqual(['failed', FULL[1]]);
      expect(error?.hint).toContain('LIMIT_PROJECT_BYTES');
      const model = await client.get<{ artifacts: { aid: string }[] }>(`/api/models/${mid}`);
      expect(model.artifacts.map(({ aid }) => aid)).toEqual(['filler']);
    });

    test('a video for the cache', async () => {
      const { pid } = await makeAlmostFull(100);
      const body = { 'content-type': 'video/mp4', images };
      const path = `/api/remotes/${sid}/videos`;
      const cached = await client.post<{ vsid: string }>(path, { ...body, project: pid, key: 'k' });
      // It is kept for a day, as one without a project.
      const made = await waitForEnd(client, cached.vsid);
      expect(made).toMatchObject({
        state: 'succeeded',
        result: { uncached: expect.stringContaining(`more than ${PROJECT_BYTES} bytes`) },
      });
      expect((await client.fetch(`${path}/${cached.vsid}`)).status).toBe(200);
      expect(await client.get(`${path}/${cached.vsid}/status`)).toMatchObject({
        uncached: made.result?.uncached,
      });
      expect((await client.fetch(`/api/projects/${pid}/cache/k`)).status).toBe(404);
      const full = await makeAlmostFull(0);
      await expectFull(await send('POST', path, { ...body, project: full.pid, key: 'k' }));
      const { vsid } = await client.post<{ vsid: string }>(path, body);
      expect((await waitForEnd(client, vsid)).error).toBeNull();
      await expectFull(await client.fetch(`${path}/${vsid}?cache=project&project=${pid}&key=k`));
      expect(await client.get(`/api/projects/${pid}/cache`)).toEqual({ items: [], next: null });
    });
  });

  /** What answers a part whose body does not come. */
  function refusedUnsent(path: string, length: number): Promise<string> {
    const { hostname, port } = new URL(stack.url);
    return new Promise((resolve, reject) => {
      const socket = connect(Number(port), hostname);
      let got = '';
      socket.once('error', reject);
      socket.setEncoding('latin1').on('data', text => {
        got += text;
        if (!got.includes('}')) return;
        socket.destroy();
        resolve(got);
      });
      const fields = [
        `Host: ${hostname}`,
        `Authorization: ${client.authorization}`,
        'Content-Type: application/octet-stream',
        `Content-Length: ${length}`,
        'Expect: 100-continue',
      ];
      socket.write(`PUT ${path} HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\n`);
    });
  }
});

describe('a disk that is almost full', () => {
  const MIB = 2 ** 20;
  const GIB = 2 ** 30;
  /** More bytes than anything else on this machine takes meanwhile; no test writes them either. */
  const ROOM = 4 * GIB;
  const { bavail, bsize } = statfsSync(tmpdir());
  const limit = bavail * bsize - ROOM;
  const env = { LIMIT_FREE_BYTES: String(Math.max(limit, 1)) };
  const { stack, client } = useStack({ start: startStack }, { env });

  test.skipIf(limit <= 0)(
    'has room for what was announced to come only once, and again when that does not come',
    async () => {
      const announce = (by: Client, uid: string, part: number, bytes: number) => {
        const connection = new RawConnection(stack.url);
        const fields = [
          'Host: windlass',
          `Authorization: ${by.authorization}`,
          'Content-Type: application/octet-stream',
          `Content-Length: ${bytes}`,
          'Expect: 100-continue',
        ];
        connection.write(
          `PUT ${partPath(uid, 0, part)} HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\n`,
        );
        return connection;
      };
      const begin = async (by: Client) => beginUpload(by, (await makeModel(by)).mid, ['a']);
      const uid = await begin(client);
      // What two users may announce at once keeps 2 GiB.
      const announced: RawConnection[] = [];
      for (const user of Object.values(await addUsers(stack, ['one', 'two']))) {
        const own = await begin(user);
        for (let part = 0; part < 16; part++) announced.push(announce(user, own, part, 64 * MIB));
      }
      for (const connection of announced)
        expect((await connection.next({ bare: true }))?.status).toBe(100);
      const large = announce(client, uid, 0, 3 * GIB);
      const refused = await large.next({ bare: true });
      expect([refused?.status, refused?.headers['x-service-hint']]).toEqual([
        507,
        expect.stringContaining('LIMIT_FREE_BYTES'),
      ]);
      large.end();
      // What is small still has room.
      expect((await putPart(client, partPath(uid, 0, 2), someBytes(10))).status).toBe(200);
      for (const connection of announced) connection.end();
      const again = await waitFor(
        async () => {
          const connection = announce(client, uid, 3, 3 * GIB);
          const answer = await connection.next({ bare: true });
          if (answer?.status === 100) return connection;
          connection.end();
        },
        { what: 'the room of who has left' },
      );
      again.end();
    },
  );
});

describe('limits of a process and its disk', () => {
  const env = { LIMIT_REQUESTS: '20', LIMIT_FREE_BYTES: String(2 ** 52) };
  const { stack, client } = useStack({ start: startStack }, { env });
  const database = useStackDatabase(stack);
  let busy: Client;

  beforeAll(async () => {
    ({ busy } = await addUsers(stack, ['busy']));
  });

  test('a part that the disk has no room for: 507, before its body is read', async () => {
    // By hand, as neither project nor upload can be made.
    const [pid, mid] = [newId(), newId()];
    await database`insert into projects (pid, name) values (${pid}, 'p')`;
    await database`insert into project_members (project, username, role)
      values (${pid}, ${stack.username}, 'administrator')`;
    await database`insert into models (mid, project, type, name) values (${mid}, ${pid}, 't', 'm')`;
    const uid = newId();
    await database`insert into uploads (uid, owner, model, parser, parameters, aids, input)
      values (${uid}, ${stack.username}, ${mid}, 'blob', '{}', '{a}', true)`;
    const answer = await putPart(client, partPath(uid, 0, 0), someBytes(10));
    const { hint } = await expectProblem(answer, 507, 'insufficient_storage');
    expect(hint).toContain('LIMIT_FREE_BYTES');
    expect((await readUpload(client, uid)).parts).toEqual([]);
  });

  test('requests of one user: 429, and nobody else pays for it', async () => {
    // In one second, wherever that begins: a slow machine takes several tries.
    const refused = await waitFor(
      async () => {
        const all = Array.from({ length: 60 }, () => busy.fetch('/api/projects'));
        return (await Promise.all(all)).find(({ status }) => status === 429);
      },
      { what: 'a refusal' },
    );
    const { hint } = await expectProblem(refused, 429, 'too_many_requests');
    expect(hint).toContain('LIMIT_REQUESTS');
    expect(refused.headers.get('Retry-After')).toBe('1');
    expect((await client.fetch('/api/projects')).status).toBe(200);
    await waitFor(async () => (await busy.fetch('/api/projects')).status === 200, {
      what: 'the next second',
    });
  });
});
