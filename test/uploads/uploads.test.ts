import { beforeAll, expect, test } from 'vitest';
import { Client } from '../../servers/api-client.ts';
import { newId } from '../../shared/ids.ts';
import { expectProblem, type Problem } from '../harness/clients/problem.ts';
import { addUsers } from '../harness/clients/projects.ts';
import { utf8 } from '../harness/clients/tables.ts';
import { TusClient } from '../harness/clients/tus.ts';
import {
  beginUpload,
  finishUpload,
  makeModel,
  partPath,
  putPart,
  readUpload,
  sha256,
  someBytes,
} from '../harness/clients/uploads.ts';
import { waitForEnd } from '../harness/hosts/remote.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack, useStackDatabase } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

describeStack(undefined, 'uploads', form => {
  const { stack, client } = useStack(form, { env: { LIMIT_UPLOADS: '40' } });
  const database = useStackDatabase(stack);
  let other: Client;
  let pid: string;
  let mid: string;

  beforeAll(async () => {
    await client.post('/api/users', { username: 'other', password: 'long enough' });
    other = new Client(stack.url, 'other', 'long enough');
    ({ pid, mid } = await makeModel(client));
  });

  const post = (body: unknown, as = client) =>
    as.fetch('/api/uploads', { method: 'POST', body: JSON.stringify(body) });
  const begin = (...aids: string[]) => beginUpload(client, mid, aids);

  test('parsers are listed with their parameters', async () => {
    const { items } = await client.get<{ items: { name: string; parameters: object }[] }>(
      '/api/configuration/parsers',
    );
    expect(items.map(item => item.name)).toEqual(expect.arrayContaining(['blob', 'csv']));
    expect(items.find(item => item.name === 'csv')?.parameters).toMatchObject({
      properties: { delimiter: { type: 'string' } },
    });
  });

  test('an upload is begun, found, listed and given up', async () => {
    const made = await post({ mid, input: true, parser: 'csv', aids: ['a', 'b'], header: true });
    const { id } = (await made.json()) as { id: string };
    expect([made.status, made.headers.get('Location')]).toEqual([201, `/api/uploads/${id}`]);
    const path = `/api/uploads/${id}`;
    const found = await client.fetch(path);
    expect(await found.json()).toMatchObject({
      id,
      mid,
      parser: 'csv',
      input: true,
      aids: ['a', 'b'],
      state: 'open',
      parts: [],
    });
    const tag = found.headers.get('ETag') ?? '';
    const unchanged = await client.fetch(path, { headers: { 'If-None-Match': tag } });
    expect(unchanged.status).toBe(304);
    await putPart(client, partPath(id, 0, 0), someBytes(10));
    const changed = await client.fetch(path, { headers: { 'If-None-Match': tag } });
    const { parts } = (await changed.json()) as { parts: unknown[] };
    expect([changed.status, parts.length]).toEqual([200, 1]);

    const ids = [id, await begin('a'), await begin('a')];
    const seen: string[] = [];
    for (let next: string | null = ''; next !== null; ) {
      const after: string = next && `&after=${next}`;
      const got: { items: { id: string }[]; next: string | null } = await client.get(
        `/api/uploads?limit=1${after}`,
      );
      expect(got.items.length).toBeLessThanOrEqual(1);
      seen.push(...got.items.map(item => item.id));
      next = got.next;
    }
    expect(seen).toEqual([...new Set(seen)].sort());
    expect(seen).toEqual(expect.arrayContaining(ids));

    const stale = await client.fetch(path, { method: 'DELETE', headers: { 'If-Match': tag } });
    await expectProblem(stale, 412, 'precondition_failed');
    const deleted = await client.fetch(path, { method: 'DELETE' });
    expect([deleted.status, deleted.statusText]).toEqual([204, 'Upload session deleted.']);
    for (const method of ['GET', 'DELETE'])
      await expectProblem(await client.fetch(path, { method }), 404, 'not_found');
    await expectProblem(await putPart(client, partPath(id, 0, 1), someBytes(1)), 404, 'not_found');
    await expectProblem(await finishUpload(client, id, [1]), 404, 'not_found');
  });

  test('names of artifacts are kept, whatever the database writes before their characters', async () => {
    const aids = [
      'a\\b',
      'a\\',
      'a\\"b',
      'a\\\\b',
      '"',
      '","',
      'a,b',
      '{a,b}',
      '{}',
      'NULL',
      ' a ',
      'é😀',
    ];
    const uid = await begin(...aids);
    expect(await client.get(`/api/uploads/${uid}`)).toMatchObject({ aids });
    await client.fetch(`/api/uploads/${uid}`, { method: 'DELETE' });
    // One was read as the other, and took its place.
    const pair = await begin('p\\q', 'pq');
    for (const [fid, text] of ['with', 'without'].entries())
      await putPart(client, partPath(pair, fid, 0), utf8(text));
    const { job } = (await (await finishUpload(client, pair, [1, 1])).json()) as { job: string };
    expect(await waitForEnd(client, job)).toMatchObject({ state: 'succeeded' });
    const read = async (aid: string) =>
      (await client.fetch(`/api/models/${mid}/files/${encodeURIComponent(aid)}`)).text();
    expect([await read('p\\q'), await read('pq')]).toEqual(['with', 'without']);
  });

  test('an upload that the previous release took with longer names in "types" is parsed', async () => {
    const names = Array.from({ length: 80 }, (_, n) => `c${n}`.padEnd(1_000, 'x'));
    const types = Object.fromEntries(names.map(name => [name, 'text']));
    const uid = newId();
    await database`insert into uploads (uid, owner, model, parser, parameters, aids, input)
      values (${uid}, ${stack.username}, ${mid}, 'csv', ${JSON.stringify({ types })}::text::jsonb, '{old}', false)`;
    const csv = `${names.join()}\n${names.map(() => '1').join()}\n`;
    expect((await putPart(client, partPath(uid, 0, 0), utf8(csv))).status).toBe(200);
    const { job } = (await (await finishUpload(client, uid, [1])).json()) as { job: string };
    expect(await waitForEnd(client, job)).toMatchObject({ state: 'succeeded' });
  });

  test('what is wrong about a new upload is named', async () => {
    const good = { mid, input: false, parser: 'blob', aids: ['a'] };
    const typesOf = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`${i}`.padEnd(100), 'text']));
    expect((await post({ ...good, parser: 'csv', types: typesOf(600) })).status).toBe(201);
    const wrong: [object, string][] = [
      [{ ...good, parser: 'nonsense' }, 'parser'],
      [{ ...good, input: 'yes' }, 'input'],
      [{ mid, parser: 'blob', aids: ['a'] }, 'input'],
      [{ ...good, aids: [] }, 'aids'],
      [{ ...good, aids: ['a', 'a'] }, 'aids'],
      [{ ...good, aids: [''] }, 'aids.0'],
      [{ ...good, aids: ['a', 'x'.repeat(256)] }, 'aids.1'],
      [{ ...good, aids: ['a\nb'] }, 'aids.0'],
      [{ ...good, aids: ['a', '..'] }, 'aids.1'],
      [{ ...good, aids: ['.'] }, 'aids.0'],
      [{ ...good, aids: Array.from({ length: 1_001 }, (_, i) => `a${i}`) }, 'aids'],
      [{ ...good, aids: Array.from({ length: 300 }, (_, i) => `${i}`.padEnd(255, 'x')) }, 'aids'],
      [{ ...good, parser: 'csv', nulls: ['-', '\ud800'] }, 'nulls.1'],
      [{ ...good, delimiter: ';' }, 'delimiter'],
      [{ ...good, parser: 'csv', delimiter: ';;' }, 'delimiter'],
      [{ ...good, parser: 'csv', types: typesOf(700) }, 'types'],
    ];
    for (const [body, field] of wrong) {
      const problem = await expectProblem(await post(body), 400, 'invalid_input');
      expect([field, problem.fields?.map(entry => entry.field)]).toEqual([field, [field]]);
    }
    const none = await post({ ...good, mid: '00000000000000000000000000' });
    await expectProblem(none, 404, 'not_found');
    const taken = await client.fetch(`/api/models/${mid}/parameters/taken`, {
      method: 'PUT',
      body: JSON.stringify({ value: 1 }),
    });
    expect(taken.status).toBe(200);
    await expectProblem(await post({ ...good, aids: ['b', 'taken'] }), 409, 'conflict');
  });

  test('an upload is its owner’s alone, who must be able to write the model', async () => {
    const uid = await begin('a');
    const body = { mid, input: true, parser: 'blob', aids: ['a'] };
    await expectProblem(await post(body, other), 404, 'not_found');
    const setAcl = (acl: object) =>
      client.fetch(`/api/projects/${pid}`, { method: 'PUT', body: JSON.stringify({ acl }) });
    expect((await setAcl({ readers: [{ user: 'other' }] })).status).toBe(200);
    await expectProblem(await post(body, other), 403, 'forbidden');
    expect((await setAcl({ readers: [], writers: [{ user: 'other' }] })).status).toBe(200);
    const theirs = await beginUpload(other, mid, ['a']);
    for (const [as, id] of [
      [other, uid],
      [client, theirs],
    ] as const) {
      const path = `/api/uploads/${id}`;
      for (const method of ['GET', 'DELETE'])
        await expectProblem(await as.fetch(path, { method }), 404, 'not_found');
      await expectProblem(await putPart(as, partPath(id, 0, 0), someBytes(9)), 404, 'not_found');
      await expectProblem(await finishUpload(as, id, [1]), 404, 'not_found');
    }
    const listed = await other.get<{ items: { id: string }[] }>('/api/uploads');
    expect(listed.items.map(item => item.id)).toEqual([theirs]);
    expect((await putPart(other, partPath(theirs, 0, 0), someBytes(9))).status).toBe(200);
    expect((await setAcl({ readers: [{ user: 'other' }], writers: [] })).status).toBe(200);
    // Upkeep, whose next run may be under way, removes it.
    const refused = await putPart(other, partPath(theirs, 0, 1), someBytes(9));
    expect([403, 404]).toContain(refused.status);
    expect([403, 404]).toContain((await finishUpload(other, theirs, [1])).status);
    expect((await setAcl({ readers: [] })).status).toBe(200);
    const hidden = await other.fetch(`/api/uploads/${theirs}`);
    await expectProblem(hidden, 404, 'not_found');
  });

  test('with its project an upload is gone at once', async () => {
    const place = await makeModel(client);
    const uid = await beginUpload(client, place.mid, ['a']);
    await client.delete(`/api/projects/${place.pid}`);
    await expectProblem(await client.fetch(`/api/uploads/${uid}`), 404, 'not_found');
    await expectProblem(await putPart(client, partPath(uid, 0, 0), someBytes(9)), 404, 'not_found');
    await expectProblem(await finishUpload(client, uid, [1]), 404, 'not_found');
  });

  test('finished compares the counts, and says what is missing and what is too much', async () => {
    const uid = await begin('a', 'b');
    const put = (fid: number, pid: number) =>
      putPart(client, partPath(uid, fid, pid), someBytes(5));
    await Promise.all([put(0, 0), put(0, 2), put(1, 0)]);
    const finish = async (...uploaded: number[]) => {
      const answer = await finishUpload(client, uid, uploaded);
      const { requestId: _, hint, detail, type: __, ...body } = (await answer.json()) as Problem;
      expect(answer.headers.get('Content-Type')).toBe('application/json; charset=utf-8');
      expect([
        answer.headers.get('X-Service-Message'),
        answer.headers.get('X-Service-Hint'),
      ]).toEqual([detail, hint]);
      return [answer.status, answer.statusText, body];
    };
    const incomplete = { code: 'upload_incomplete', title: 'Upload incomplete', status: 400 };
    const confused = { code: 'client_confused', title: 'Client confused', status: 400 };
    expect(await finish(3, 2)).toEqual([
      400,
      'Upload incomplete',
      {
        ...incomplete,
        missing: [
          [0, 1],
          [1, 1],
        ],
      },
    ]);
    expect(await finish(4)).toEqual([
      400,
      'Upload incomplete',
      {
        ...incomplete,
        missing: [
          [0, 1],
          [0, 3],
        ],
        excess: [[1, 0]],
      },
    ]);
    await put(0, 1);
    expect(await finish(1)).toEqual([
      400,
      'Client confused',
      {
        ...confused,
        excess: [
          [0, 1],
          [0, 2],
          [1, 0],
        ],
      },
    ]);
    const [status, , body] = await finish(3, 1, Number.MAX_SAFE_INTEGER);
    expect([status, body]).toMatchObject([400, { ...incomplete, truncated: true }]);
    expect((body as object as { missing: unknown[] }).missing).toHaveLength(10_000);
    for (const wrong of [[], [0], [-1], [1.5], ['1'], null, {}]) {
      const answer = await client.fetch(`/api/uploads/${uid}/finished`, {
        method: 'POST',
        body: JSON.stringify({ uploaded: wrong }),
      });
      await expectProblem(answer, 400, 'invalid_input');
    }
    expect((await readUpload(client, uid)).state).toBe('open');
  });

  test('finished is accepted for the parts that were looked at, and for no others', async () => {
    const uid = await begin('a');
    await putPart(client, partPath(uid, 0, 0), someBytes(5));
    const path = `/api/uploads/${uid}`;
    const tag = (await client.fetch(path)).headers.get('ETag') ?? '';
    // As of a request that was given up, and arrives late.
    await putPart(client, partPath(uid, 0, 0), someBytes(6));
    const finish = (tag: string) =>
      client.fetch(`${path}/finished`, {
        method: 'POST',
        body: JSON.stringify({ uploaded: [1] }),
        headers: { 'Content-Type': 'application/json', 'If-Match': tag },
      });
    await expectProblem(await finish(tag), 412, 'precondition_failed');
    expect((await readUpload(client, uid)).state).toBe('open');
    const now = (await client.fetch(path)).headers.get('ETag') ?? '';
    expect((await finish(now)).status).toBe(202);
  });

  test('finished is accepted once, begins the parse, and ends the taking of parts', async () => {
    const uid = await begin('whole');
    const bytes = someBytes(1_000_000);
    const [first, second] = [bytes.subarray(0, 400_001), bytes.subarray(400_001)];
    await putPart(client, partPath(uid, 0, 1), second);
    await putPart(client, partPath(uid, 0, 0), first);
    const send = (key: string) =>
      client.fetch(`/api/uploads/${uid}/finished`, {
        method: 'POST',
        headers: { 'Idempotency-Key': key },
        body: JSON.stringify({ uploaded: [2] }),
      });
    const answers = await Promise.all(['a', 'a', 'b', 'c'].map(send));
    const accepted = answers.filter(answer => answer.status === 202);
    expect(answers.filter(answer => answer.status === 409).length + accepted.length).toBe(4);
    const bodies = await Promise.all(accepted.map(answer => answer.json()));
    const { job } = bodies[0] as { job: string };
    expect(job).toEqual(expect.any(String));
    for (const body of bodies) expect(body).toEqual({ missing: [], job });
    expect(accepted[0]?.headers.get('Location')).toBe(`/api/jobs/${job}`);
    await expectProblem(await putPart(client, partPath(uid, 0, 0), first), 409, 'conflict');
    await expectProblem(await send('d'), 409, 'conflict');
    expect(await waitForEnd(client, job)).toMatchObject({ kind: 'parse', state: 'succeeded' });
    expect(await readUpload(client, uid)).toMatchObject({ state: 'done', job });
    const stored = await client.fetch(`/api/models/${mid}/files/whole`);
    const read = new Uint8Array(await stored.arrayBuffer());
    expect([stored.status, sha256(read)]).toEqual([200, sha256(bytes)]);
    expect((await client.fetch(`/api/uploads/${uid}`, { method: 'DELETE' })).status).toBe(204);
  });

  test('If-Modified-Since names the file that it was read of, also where an older one takes its place', async () => {
    const path = `/api/models/${mid}/files/dated`;
    const send = async (bytes: Uint8Array) => {
      const uid = await begin('dated');
      await putPart(client, partPath(uid, 0, 0), bytes);
      return uid;
    };
    const promote = async (uid: string) => {
      const { job } = (await (await finishUpload(client, uid, [1])).json()) as { job: string };
      await waitForEnd(client, job);
    };
    const older = someBytes(100);
    const sentFirst = await send(older);
    // Dates of HTTP have seconds.
    const second = () => Math.floor(Date.now() / 1_000);
    const sent = second();
    await waitFor(() => second() > sent, { what: 'the next second' });
    await promote(await send(someBytes(100)));
    const since = (await client.fetch(path)).headers.get('Last-Modified') ?? '';
    const again = () => client.fetch(path, { headers: { 'If-Modified-Since': since } });
    expect((await again()).status).toBe(304);
    // RFC 9110, 13.1.4: not where If-Match is given, nor by what is no date.
    const before = new Date(Date.parse(since) - 1_000).toUTCString();
    const tag = (await client.fetch(path)).headers.get('ETag') ?? '';
    for (const [method, headers, status] of [
      ['GET', { 'If-Unmodified-Since': before }, 412],
      ['DELETE', { 'If-Unmodified-Since': before }, 412],
      ['GET', { 'If-Unmodified-Since': since }, 200],
      ['GET', { 'If-Unmodified-Since': before, 'If-Match': tag }, 200],
      ['GET', { 'If-Unmodified-Since': 'yesterday' }, 200],
    ] as const) {
      const answer = await client.fetch(path, { method, headers });
      expect([method, headers, answer.status]).toEqual([method, headers, status]);
    }
    await promote(sentFirst);
    const found = await again();
    expect([found.status, sha256(new Uint8Array(await found.arrayBuffer()))]).toEqual([
      200,
      sha256(older),
    ]);
    const headers = { 'If-Unmodified-Since': found.headers.get('Last-Modified') ?? '' };
    expect((await client.fetch(path, { method: 'DELETE', headers })).status).toBe(204);
  });

  test('an upload that cannot be parsed says why', async () => {
    const uid = await begin('one', 'two');
    await putPart(client, partPath(uid, 0, 0), someBytes(3));
    const { job } = (await (await finishUpload(client, uid, [1])).json()) as { job: string };
    expect(await waitForEnd(client, job)).toMatchObject({ state: 'failed' });
    expect(await readUpload(client, uid)).toMatchObject({
      state: 'failed',
      error: { message: expect.stringContaining('cannot be parsed'), errors: expect.any(Array) },
    });
  });

  test('a user may have so many open uploads', async () => {
    const open = async () =>
      (await client.get<{ items: { state: string }[] }>('/api/uploads?limit=1000')).items.filter(
        item => item.state === 'open',
      ).length;
    while ((await open()) < 40) await begin('a');
    const refused = await post({ mid, input: true, parser: 'blob', aids: ['a'] });
    await expectProblem(refused, 429, 'too_many_requests');
    expect(Number(refused.headers.get('Retry-After'))).toBeGreaterThan(0);
    const { items } = await client.get<{ items: { id: string; state: string }[] }>('/api/uploads');
    await client.delete(`/api/uploads/${items.find(item => item.state === 'open')?.id}`);
    await begin('a');
  });

  test('uploads into a project that their owner has left do not count', async () => {
    const { guest } = await addUsers(stack, ['guest']);
    const place = await makeModel(client);
    const setAcl = (acl: object) =>
      client.fetch(`/api/projects/${place.pid}`, { method: 'PUT', body: JSON.stringify({ acl }) });
    expect((await setAcl({ writers: [{ user: 'guest' }] })).status).toBe(200);
    for (let n = 0; n < 40; n++) await beginUpload(guest, place.mid, ['a']);
    const own = await makeModel(guest);
    const body = { mid: own.mid, input: true, parser: 'blob', aids: ['a'] };
    await expectProblem(await post(body, guest), 429, 'too_many_requests');
    expect((await setAcl({ writers: [] })).status).toBe(200);
    expect((await post(body, guest)).status).toBe(201);
  });

  test('of many that are begun at once no more than that', async () => {
    const { hasty } = await addUsers(stack, ['hasty']);
    const models = await Promise.all(Array.from({ length: 20 }, () => makeModel(hasty)));
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, i) =>
        post({ mid: models[i % 20]?.mid, input: true, parser: 'blob', aids: ['a'] }, hasty),
      ),
    );
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(40);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(20);
  });
});

describeStack(undefined, 'idle uploads', form => {
  const { client } = useStack(form, { env: { UPLOAD_IDLE_TIMEOUT: '3' } });

  test('an idle upload ends, and one that has ended loses its parts', {
    timeout: 90_000,
  }, async () => {
    const { mid } = await makeModel(client);
    const idle = await beginUpload(client, mid, ['a']);
    const failed = await beginUpload(client, mid, ['one', 'two']);
    for (const uid of [idle, failed]) await putPart(client, partPath(uid, 0, 0), someBytes(100));
    expect((await finishUpload(client, failed, [1])).status).toBe(202);
    await waitFor(async () => (await client.fetch(`/api/uploads/${idle}`)).status === 404, {
      what: 'the idle upload to end',
      timeoutMs: 30_000,
    });
    await waitFor(async () => (await readUpload(client, failed)).parts.length === 0, {
      what: 'the parts of the failed one to go',
      timeoutMs: 30_000,
    });
    expect((await readUpload(client, failed)).state).toBe('failed');
  });

  test('an upload by tus ends when it said that it would', async () => {
    const { mid } = await makeModel(client);
    const tus = new TusClient(client);
    const begun = await tus.create(100, { mid, parser: 'blob', aid: 'idle' });
    const path = begun.headers.get('Location') ?? '';
    expect((await tus.patch(path, 0, someBytes(10))).status).toBe(204);
    const expires = Date.parse((await tus.head(path)).headers.get('Upload-Expires') ?? '');
    await waitFor(async () => (await tus.head(path)).status === 404, { what: 'the end' });
    expect(Date.now()).toBeGreaterThanOrEqual(expires);
    await expectProblem(await tus.patch(path, 10, someBytes(10)), 404, 'not_found');
    await expectProblem(await tus.terminate(path), 404, 'not_found');
  });
});
