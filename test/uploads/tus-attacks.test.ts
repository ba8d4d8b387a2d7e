import { randomBytes, randomInt } from 'node:crypto';
import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { beforeAll, expect, test } from 'vitest';
import type { Client } from '../../servers/api-client.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { addUsers } from '../harness/clients/projects.ts';
import { RawConnection } from '../harness/clients/raw-http.ts';
import { TusClient, tusMetadata } from '../harness/clients/tus.ts';
import { makeModel, readUpload, someBytes } from '../harness/clients/uploads.ts';
import { openStackDatabase } from '../harness/databases/database.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const MB = 1 << 20;
const LIMIT_PROJECT_BYTES = 200 * MB;
/** More than two sockets hold back: where all of it is written, the service has begun to read. */
const FLOOD = 32 * MB;
const BYTES = { 'Tus-Resumable': '1.0.0', 'Content-Type': 'application/offset+octet-stream' };

describeStack(undefined, 'enemies of an upload by tus', form => {
  const { stack, client } = useStack(form, {
    env: { LIMIT_PROJECT_BYTES: String(LIMIT_PROJECT_BYTES) },
  });
  const tus = new TusClient(client);
  let mid: string;

  beforeAll(async () => {
    ({ mid } = await makeModel(client));
  });

  const blob = (aid: string) => ({ mid, parser: 'blob', aid });
  const begin = async (length: number, aid: string): Promise<string> =>
    (await tus.create(length, blob(aid))).headers.get('Location') ?? '';
  const uidOf = (path: string) => path.split('/').at(-1) ?? '';
  const openUploads = async (of: Client = client) => {
    const { items } = await of.get<{ items: { id: string; state: string }[] }>('/api/uploads');
    return items.filter(({ state }) => state === 'open').map(({ id }) => id);
  };
  const expectFile = async (aid: string, bytes: Uint8Array) => {
    const answer = await waitFor(
      async () => {
        const found = await client.fetch(`/api/models/${mid}/files/${aid}`);
        return found.ok ? found : undefined;
      },
      { what: `the file ${aid}` },
    );
    expect(Buffer.from(await answer.arrayBuffer()).equals(bytes)).toBe(true);
  };

  /** A PATCH whose first bytes the service has begun to store. */
  async function beginPatch(path: string, bytes: Buffer): Promise<ClientRequest> {
    const sending = request(stack.url + path, {
      method: 'PATCH',
      headers: {
        ...BYTES,
        'Upload-Offset': 0,
        'Content-Length': bytes.length,
        Authorization: client.authorization,
      },
    });
    sending.on('error', () => {});
    await new Promise<void>(resolve => sending.write(bytes.subarray(0, FLOOD), () => resolve()));
    return sending;
  }
  const answerTo = async (sending: ClientRequest) => {
    const [answer] = (await once(sending, 'response')) as [IncomingMessage];
    answer.resume();
    return answer.statusCode;
  };

  test('encoded bytes are not taken for those of the file', async () => {
    const encoded = { ...BYTES, 'Content-Encoding': 'gzip' };
    const before = await openUploads();
    const first = await client.fetch('/api/tus', {
      method: 'POST',
      headers: {
        ...encoded,
        'Upload-Length': '4',
        'Upload-Metadata': tusMetadata(blob('encoded')),
      },
      body: 'text',
    });
    await expectProblem(first, 415, 'unsupported_media_type');
    expect(await openUploads()).toEqual(before);
    const path = await begin(4, 'encoded');
    const patch = (headers: Record<string, string>) =>
      client.fetch(path, {
        method: 'PATCH',
        headers: { ...headers, 'Upload-Offset': '0' },
        body: 'text',
      });
    await expectProblem(await patch(encoded), 415, 'unsupported_media_type');
    expect((await patch(BYTES)).status).toBe(204);
    await expectFile('encoded', Buffer.from('text'));
  });

  test('another user does not disturb it', async () => {
    const { thief } = await addUsers(stack, ['thief']);
    const bytes = randomBytes(FLOOD + 5);
    const path = await begin(bytes.length, 'undisturbed');
    const sending = await beginPatch(path, bytes);
    const theirs = new TusClient(thief);
    expect((await theirs.head(path)).status).toBe(404);
    expect((await theirs.patch(path, 0, someBytes(5))).status).toBe(404);
    expect((await theirs.terminate(path)).status).toBe(404);
    sending.end(bytes.subarray(FLOOD));
    expect(await answerTo(sending)).toBe(204);
    await expectFile('undisturbed', bytes);
  });

  test('the owner who asks for the offset ends the request that still runs, and is told what holds', async () => {
    const bytes = randomBytes(FLOOD + 5);
    const path = await begin(bytes.length, 'asked');
    const sending = await beginPatch(path, bytes);
    const ended = answerTo(sending);
    const offset = await tus.offset(path);
    expect(offset).toBeGreaterThan(0);
    // tus-js-client and Uppy give up after 400.
    expect(await ended).toBe(423);
    expect(await tus.offset(path)).toBe(offset);
    expect((await tus.patch(path, offset, bytes.subarray(offset))).status).toBe(204);
    await expectFile('asked', bytes);
  });

  test('the owner who gives it up ends the request that still runs', async () => {
    const bytes = randomBytes(FLOOD + 5);
    const path = await begin(bytes.length, 'given up');
    const ended = answerTo(await beginPatch(path, bytes));
    expect((await tus.terminate(path)).status).toBe(204);
    expect(await ended).toBe(423);
    expect((await tus.head(path)).status).toBe(404);
  });

  test('of a creation that is refused or cut nothing stays', async () => {
    const before = await openUploads();
    const long = await tus.create(10, blob('too long'), { bytes: someBytes(11) });
    await expectProblem(long, 413, 'payload_too_large');
    const headers = { 'Upload-Checksum': 'sha1 AAAA' };
    const wrong = await tus.create(10, blob('wrong'), { bytes: someBytes(10), headers });
    await expectProblem(wrong, 460, 'checksum_mismatch');
    const vast = await tus.create(LIMIT_PROJECT_BYTES + 1, blob('vast'));
    await expectProblem(vast, 507, 'insufficient_storage');
    expect(vast.headers.get('Location')).toBe(null);

    const connection = new RawConnection(stack.url);
    connection.write(
      `POST /api/tus HTTP/1.1\r\nHost: x\r\nAuthorization: ${client.authorization}\r\nUpload-Length: 1000\r\nUpload-Metadata: ${tusMetadata(blob('cut'))}\r\nTus-Resumable: 1.0.0\r\nContent-Type: application/offset+octet-stream\r\nContent-Length: 1000\r\n\r\nsome`,
    );
    await waitFor(async () => (await openUploads()).length > before.length, {
      what: 'the upload to be created',
    });
    connection.finish();
    await connection.closed();
    await waitFor(async () => (await openUploads()).length === before.length, {
      what: 'the cut upload to be removed',
    });
    expect(await openUploads()).toEqual(before);
  });

  test('what we do not offer is refused by its name', async () => {
    for (const [name, value] of [
      ['Upload-Defer-Length', '1'],
      ['Upload-Concat', 'partial'],
    ] as const) {
      const answer = await tus.create(10, blob('extended'), { headers: { [name]: value } });
      const { fields } = await expectProblem(answer, 400, 'invalid_input');
      expect(fields?.map(({ field }) => field)).toEqual([name]);
    }
    for (const length of [
      '-1',
      '1.5',
      '1e3',
      '0x10',
      '9007199254740993',
      '99999999999999999',
      ' ',
    ]) {
      const headers = { 'Upload-Length': length };
      const answer = await tus.create(10, blob('long'), { headers });
      const { fields } = await expectProblem(answer, 400, 'invalid_input');
      expect([length, fields?.map(({ field }) => field)]).toEqual([length, ['Upload-Length']]);
    }
  });

  test('malformed and huge metadata are refused, and nothing breaks', async () => {
    const given = (more: Record<string, string>) => tusMetadata({ ...blob('hostile'), ...more });
    const csv = { parser: 'csv' };
    const deep = '['.repeat(4_000);
    const hostile = [
      '',
      ',',
      'mid',
      'mid !!!!',
      'mid bWlk bWlk',
      `${given({})},mid bWlk`,
      given({ aid: 'a\0b' }),
      given({ aid: '' }),
      given({ aid: 'x'.repeat(9_000) }),
      given({ mid: '\0' }),
      given({ mid: "'; drop table uploads; --" }),
      given({ parser: 'constructor' }),
      given({ parser: '__proto__' }),
      `${given({})},constructor eyJhIjoxfQ==`,
      given({ input: '"true"' }),
      given({ aids: '["a"]' }),
      given({ ...csv, nulls: '["\\u0000"]' }),
      given({ ...csv, comment: '\0' }),
      given({ ...csv, delimiter: '\0' }),
      given({ ...csv, types: '{"a\\u0000": "text"}' }),
      given({ ...csv, types: '{"__proto__": "text"}x' }),
      given({ ...csv, types: deep }),
      given({ ...csv, nulls: deep }),
      `${given({})},${Array.from({ length: 900 }, (_, i) => `k${i} AA==`).join()}`,
    ];
    const taken: [string, number][] = [];
    for (const metadata of hostile) {
      const answer = await tus.create(10, {}, { headers: { 'Upload-Metadata': metadata } });
      if (answer.status !== 400 && answer.status !== 404)
        taken.push([metadata.slice(0, 300), answer.status]);
      await answer.body?.cancel();
    }
    expect(taken).toEqual([]);
    // LIMIT_HEADER_BYTES.
    const huge = await tus.create(10, { ...blob('huge'), filename: 'x'.repeat(30_000) });
    expect(huge.status).toBe(431);
    expect(await openUploads()).toEqual([]);
  });

  test('many who append at once, at right and wrong offsets, lose no byte and double none', async () => {
    const bytes = randomBytes(300_000);
    const path = await begin(bytes.length, 'swarm');
    const seen = new Set<number>();
    const append = async () => {
      for (;;) {
        const { headers } = await tus.head(path);
        const offset = Number(headers.get('Upload-Offset'));
        if (offset === bytes.length) return;
        const from = Math.max(0, offset + randomInt(-1, 2));
        const piece = bytes.subarray(from, from + randomInt(1, 20_000));
        seen.add((await tus.patch(path, from, piece)).status);
      }
    };
    await Promise.all(Array.from({ length: 6 }, append));
    await expectFile('swarm', bytes);
    for (const status of seen) expect([204, 409, 413, 423]).toContain(status);
  });

  test('who asks while the parse begins is answered the offset', async () => {
    const bytes = someBytes(1_000);
    const path = await begin(bytes.length, 'parsing');
    const sql = openStackDatabase(stack);
    try {
      const answers = await sql.begin(async tx => {
        await tx`select from models where mid = ${mid} for update`;
        const waiting = (count: number) =>
          waitFor(
            async () => {
              const [row] = await tx`select count(*)::int as n from pg_stat_activity
                where datname = current_database() and wait_event_type = 'Lock'`;
              return row?.n >= count;
            },
            { what: `${count} requests that wait` },
          );
        // tus-js-client begins again from the first byte where HEAD is answered with an error.
        const patched = tus.patch(path, 0, bytes);
        await waiting(1);
        const asked = [tus.head(path), tus.head(path)];
        await waiting(3);
        return [patched, ...asked];
      });
      const statuses = (await Promise.all(answers)).map(({ status }) => status);
      expect(statuses).toEqual([204, 200, 200]);
    } finally {
      await sql.end();
    }
    expect((await readUpload(client, uidOf(path))).job).toBeDefined();
    await expectFile('parsing', bytes);
  });

  test('POST stands for the method that its header names, with the rights that this needs', async () => {
    const bytes = someBytes(100);
    const path = await begin(bytes.length, 'overridden');
    const post = (method: string, authorization = client.authorization) =>
      fetch(stack.url + path, {
        method: 'POST',
        headers: {
          ...BYTES,
          'X-HTTP-Method-Override': method,
          'Upload-Offset': '0',
          Authorization: authorization,
        },
        body: bytes,
      });
    const { token } = await client.post<{ token: string }>('/api/users/-/tokens', {
      name: 'tus reader',
      scope: 'read',
    });
    await expectProblem(await post('PATCH', `Bearer ${token}`), 403, 'forbidden');
    await expectProblem(await post('DELETE', `Bearer ${token}`), 403, 'forbidden');
    // It would end what the owner sends, or begin to parse it.
    const head = await fetch(stack.url + path, {
      method: 'HEAD',
      headers: { ...BYTES, Authorization: `Bearer ${token}` },
    });
    expect(head.status).toBe(403);
    await expectProblem(await post('GET'), 405, 'method_not_allowed');
    expect((await post('PATCH')).status).toBe(204);
    await expectFile('overridden', bytes);
    // The client does not know that its answer is one to HEAD.
    const connection = new RawConnection(stack.url);
    connection.write(
      `POST /api/tus/nothing HTTP/1.1\r\nHost: x\r\nAuthorization: ${client.authorization}\r\nTus-Resumable: 1.0.0\r\nX-HTTP-Method-Override: HEAD\r\nContent-Length: 0\r\n\r\n`,
    );
    const answer = await connection.next();
    connection.end();
    expect([answer?.status, JSON.parse(answer?.body ?? '').code]).toEqual([404, 'not_found']);
  });
});
