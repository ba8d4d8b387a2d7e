import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { expectProblem } from '../harness/clients/problem.ts';
import {
  beginUpload,
  digestField,
  makeModel,
  partPath,
  putPart,
  readUpload,
  sha256,
  someBytes,
} from '../harness/clients/uploads.ts';
import { describeForms } from '../harness/stacks/forms.ts';
import { useStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const LARGE = 64 << 20;

describeForms(undefined, 'parts of uploads', form => {
  const { stack, client } = useStack(form);
  let mid: string;
  let uid: string;

  beforeAll(async () => {
    ({ mid } = await makeModel(client));
    uid = await beginUpload(client, mid, ['a']);
  });

  /** A request's head on a socket of its own, and all that comes back. */
  function open(path: string, headers: Record<string, string | number>) {
    const { hostname, port } = new URL(stack.url);
    const socket: Socket = connect(Number(port), hostname);
    const got = { text: '', closed: false };
    socket.setEncoding('latin1');
    socket.on('data', chunk => {
      got.text += chunk;
    });
    socket
      .on('error', () => {})
      .on('close', () => {
        got.closed = true;
      });
    const fields = { Host: hostname, Authorization: client.authorization, ...headers };
    const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}`);
    socket.write(`PUT ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
    const answer = (start: string) =>
      waitFor(() => got.text.startsWith(start), { what: `${start}, not ${got.text}` });
    return { socket, got, answer };
  }
  const bytesOf = async (pid: number) =>
    (await readUpload(client, uid)).parts.find(part => part.pid === pid);

  test('an Idempotency-Key that is none is refused, also where it would mean nothing', async () => {
    const refused = await client.fetch(partPath(uid, 0, 0), {
      method: 'PUT',
      headers: { 'Content-Type': 'application/octet-stream', 'Idempotency-Key': 'two words' },
      body: 'bytes',
    });
    await expectProblem(refused, 400, 'invalid_input');
  });

  test('parts arrive in any order and many at once, and the same one again replaces it', async () => {
    const uid = await beginUpload(client, mid, ['a', 'b']);
    const sizes = [0, 1, 70_000, 5_000_000];
    const sent = Array.from({ length: 20 }, (_, i) => ({
      fid: i % 2,
      pid: 9 - (i >> 1),
      bytes: someBytes(sizes[i % sizes.length] ?? 0),
    }));
    await Promise.all(
      sent.map(async ({ fid, pid, bytes }) => {
        const answer = await putPart(client, partPath(uid, fid, pid), bytes);
        const hex = createHash('sha256').update(bytes).digest('hex');
        expect([answer.status, await answer.text(), answer.headers.get('ETag')]).toEqual([
          200,
          '',
          `"${hex}"`,
        ]);
      }),
    );
    const again = someBytes(123);
    expect((await putPart(client, partPath(uid, 1, 3), again)).status).toBe(200);
    const expected = sent
      .map(({ fid, pid, bytes }) => ({ fid, pid, bytes: fid === 1 && pid === 3 ? again : bytes }))
      .sort((a, b) => a.fid - b.fid || a.pid - b.pid)
      .map(({ bytes, ...at }) => ({ ...at, size: bytes.length, digest: sha256(bytes) }));
    expect((await readUpload(client, uid)).parts).toEqual(expected);
  });

  test('Content-Digest is verified, and a part that differs is not kept', async () => {
    const uid = await beginUpload(client, mid, ['a']);
    const bytes = someBytes(100_000);
    const put = (field: string) =>
      putPart(client, partPath(uid, 0, 0), bytes, { 'Content-Digest': field });
    const md5 = `md5=:${createHash('md5').update(bytes).digest('base64')}:`;
    expect((await put(`${md5}, ${digestField(bytes)}`)).status).toBe(200);
    expect((await put('sha-512=:AAAA:')).status).toBe(200);
    const before = (await readUpload(client, uid)).parts;
    await expectProblem(await put(digestField(someBytes(1))), 400, 'digest_mismatch');
    for (const malformed of ['sha-256=abc', 'sha-256=:AAAA:', 'nonsense', 'sha-256=:!:', ''])
      await expectProblem(await put(malformed), 400, 'invalid_input');
    expect((await readUpload(client, uid)).parts).toEqual(before);
  });

  test('If-Match: a part is replaced only where it is the one that was seen', async () => {
    const uid = await beginUpload(client, mid, ['a']);
    const path = partPath(uid, 0, 0);
    const put = (bytes: Uint8Array, tag?: string) =>
      putPart(client, path, bytes, tag === undefined ? {} : { 'If-Match': tag });
    const refuse = async (answer: Promise<Response>) => {
      await expectProblem(await answer, 412, 'precondition_failed');
    };
    const [first, second, third] = [someBytes(10), someBytes(20), someBytes(30)] as const;
    await refuse(put(first, '*'));
    expect((await readUpload(client, uid)).parts).toEqual([]);
    const tag = (await put(first)).headers.get('ETag') ?? '';
    await refuse(put(second, `W/${tag}`));
    const other = (await put(second, `"other", ${tag}`)).headers.get('ETag') ?? '';
    await refuse(put(third, tag));
    const formed = new FormData();
    formed.set('file', new Blob([third as Uint8Array<ArrayBuffer>]));
    const headers = { 'If-Match': tag };
    await refuse(stack.api(path, { method: 'PUT', body: formed, headers }));
    const copied = { sid: 'x', path: '/x' };
    const copy = await client.fetch(path, { method: 'PUT', body: JSON.stringify(copied), headers });
    expect(copy.status).toBe(404);
    // Both saw the same: one comes second.
    const answers = await Promise.all([put(first, other), put(third, other)]);
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 412]);
    const kept = answers[0]?.status === 200 ? first : third;
    expect((await readUpload(client, uid)).parts).toMatchObject([{ digest: sha256(kept) }]);
  });

  test('a part comes as a form, too', async () => {
    const uid = await beginUpload(client, mid, ['a']);
    const bytes = someBytes(300_000);
    const send = (form: FormData, headers: Record<string, string> = {}) =>
      stack.api(partPath(uid, 0, 0), { method: 'PUT', body: form, headers });
    const form = (...files: [string, Uint8Array][]) => {
      const made = new FormData();
      for (const [name, content] of files)
        made.append(name, new Blob([content as Uint8Array<ArrayBuffer>]), 'name.bin');
      return made;
    };
    expect((await send(form(['file', bytes]))).status).toBe(200);
    const stored = [{ fid: 0, pid: 0, size: bytes.length, digest: sha256(bytes) }];
    expect((await readUpload(client, uid)).parts).toEqual(stored);

    const named = form(['file', bytes]);
    named.append('note', 'x');
    const wrong: [FormData, string][] = [
      [form(['data', bytes]), 'data'],
      [form(['file', bytes], ['file', bytes]), 'file'],
      [form(['file', bytes], ['more', bytes]), 'more'],
      [named, 'note'],
    ];
    for (const [body, field] of wrong) {
      const problem = await expectProblem(await send(body), 400, 'invalid_input');
      expect(problem.fields?.map(entry => entry.field)).toEqual([field]);
    }
    const mixed = form(['file', bytes]);
    mixed.append('path', '/x');
    await expectProblem(await send(mixed), 400, 'invalid_input');
    await expectProblem(await send(form()), 400, 'invalid_input');
    const digested = await send(form(['file', bytes]), { 'Content-Digest': digestField(bytes) });
    await expectProblem(digested, 400, 'digest_mismatch');
    const type = 'multipart/form-data; boundary=x';
    for (const broken of [
      '',
      '--x\r\n',
      '--x\r\nContent-Disposition: form-data; name="file"\r\n\r\nab',
    ])
      await expectProblem(
        await stack.api(partPath(uid, 0, 0), {
          method: 'PUT',
          body: broken,
          headers: { 'Content-Type': type },
        }),
        400,
        'invalid_input',
      );
    expect((await readUpload(client, uid)).parts).toEqual(stored);
  });

  test('file and part numbers, codings and ranges that cannot be are refused', async () => {
    const uid = await beginUpload(client, mid, ['a']);
    const wrong = ['-1', '1.5', '01', 'x', '1e2', '99999999999999999999'];
    for (const [fid, part, field] of [
      ...[...wrong, '1000'].map(n => [n, '0', 'fid'] as const),
      ...[...wrong, '100000'].map(n => ['0', n, 'part'] as const),
    ]) {
      const answer = await putPart(client, partPath(uid, fid, part), someBytes(10));
      const problem = await expectProblem(answer, 400, 'invalid_input');
      expect(problem.fields?.map(entry => entry.field)).toEqual([field]);
    }
    expect((await putPart(client, partPath(uid, 999, 99_999), someBytes(1))).status).toBe(200);
    const send = (headers: Record<string, string>) =>
      putPart(client, partPath(uid, 0, 0), someBytes(10), headers);
    await expectProblem(await send({ 'Content-Encoding': 'gzip' }), 415, 'unsupported_media_type');
    await expectProblem(await send({ 'Content-Range': 'bytes 0-9/20' }), 400, 'bad_request');
    expect((await send({ 'Content-Type': 'text/csv' })).status).toBe(200);
    const post = await client.fetch(partPath(uid, 0, 0), { method: 'POST', body: '{}' });
    expect([post.status, post.headers.get('Allow')]).toEqual([405, 'PUT']);
  });

  test('Expect: 100-continue: the body is asked for, or refused before it is', async () => {
    const bytes = someBytes(1_000);
    const expecting = { Expect: '100-continue', 'Content-Length': bytes.length };
    const { socket, got, answer } = open(partPath(uid, 0, 0), expecting);
    await answer('HTTP/1.1 100 Continue\r\n\r\n');
    got.text = '';
    socket.write(bytes);
    await answer('HTTP/1.1 200 OK');
    // The connection lives on.
    got.text = '';
    socket.write(
      `GET /api/uploads/${uid} HTTP/1.1\r\nHost: x\r\nAuthorization: ${client.authorization}\r\nConnection: close\r\n\r\n`,
    );
    await answer('HTTP/1.1 200 OK');
    expect(await bytesOf(0)).toMatchObject({ size: 1_000, digest: sha256(bytes) });

    const refused: [string, Record<string, string | number>, string][] = [
      [partPath(uid, 0, 0), { ...expecting, Authorization: 'Basic eDp5' }, '401'],
      [partPath('00000000000000000000000000', 0, 0), expecting, '404'],
      [partPath(uid, 0, 'x'), expecting, '400'],
      [partPath(uid, 0, 0), { ...expecting, 'Content-Digest': 'x' }, '400'],
      [partPath(uid, 0, 0), { ...expecting, 'Content-Length': 5 * 2 ** 30 + 1 }, '413'],
    ];
    for (const [path, headers, status] of refused) {
      const request = open(path, headers);
      await request.answer(`HTTP/1.1 ${status}`);
      // Nobody knows whether the body comes: nothing else can follow on this connection.
      await waitFor(() => request.got.closed, { what: 'the connection to end' });
      expect(request.got.text).not.toContain('100 Continue');
      expect(request.got.text).toMatch(/^Connection: close\r$/m);
    }
  });

  test('a refusal reaches a client that is still sending, whatever it wants of its connection', async () => {
    for (const connection of ['keep-alive', 'close']) {
      const headers = { 'Content-Length': LARGE, Connection: connection };
      const paths: [string, Record<string, string>, string][] = [
        [partPath(uid, 0, 1), { Authorization: 'Basic eDp5' }, '401'],
        [partPath('00000000000000000000000000', 0, 0), {}, '404'],
        [partPath(uid, 0, 'x'), {}, '400'],
      ];
      for (const [path, more, status] of paths) {
        const { socket, got, answer } = open(path, { ...headers, ...more });
        const piece = Buffer.alloc(1 << 20);
        for (let sent = 0; sent < LARGE; sent += piece.length) {
          // As a client that writes all before it reads: a reset would end this.
          expect([status, connection, got.closed]).toEqual([status, connection, false]);
          await new Promise(resolve => socket.write(piece, resolve));
        }
        await answer(`HTTP/1.1 ${status}`);
        if (connection === 'close') await waitFor(() => got.closed, { what: 'the end' });
        socket.destroy();
      }
    }
  });

  test('a part of unknown length, in chunks', async () => {
    const { socket, answer } = open(partPath(uid, 0, 2), { 'Transfer-Encoding': 'chunked' });
    const bytes = someBytes(50_000);
    for (let at = 0; at < bytes.length; at += 10_000) {
      socket.write(`${(10_000).toString(16)}\r\n`);
      socket.write(bytes.subarray(at, at + 10_000));
      socket.write('\r\n');
    }
    socket.write('0\r\n\r\n');
    await answer('HTTP/1.1 200 OK');
    socket.destroy();
    expect(await bytesOf(2)).toMatchObject({ size: 50_000, digest: sha256(bytes) });
  });

  test('a client that leaves in the middle leaves nothing, and the next one is served', async () => {
    for (const headers of [
      { 'Content-Length': LARGE },
      { 'Transfer-Encoding': 'chunked' },
      { 'Content-Length': LARGE, 'Content-Type': 'multipart/form-data; boundary=x' },
    ] as Record<string, string | number>[]) {
      const { socket } = open(partPath(uid, 0, 3), headers);
      if (headers['Transfer-Encoding']) socket.write('100000\r\n');
      if (headers['Content-Type'])
        socket.write('--x\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n');
      await new Promise(resolve => socket.write(Buffer.alloc(1 << 19), resolve));
      socket.resetAndDestroy();
    }
    const answer = await client.fetch(partPath(uid, 0, 4), {
      method: 'PUT',
      headers: { 'Content-Type': 'application/octet-stream' },
      body: 'x',
    });
    expect(answer.status).toBe(200);
    expect(await bytesOf(3)).toBeUndefined();
    if (form.name !== 'embedded') return;
    const incoming = join(stack.dataDir, 'objects', 'incoming');
    await waitFor(() => readdirSync(incoming).length === 0, { what: 'what came of them to go' });
  });
});
