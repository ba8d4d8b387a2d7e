import { createHash } from 'node:crypto';
import { beforeAll, expect, test } from 'vitest';
import { expectProblem } from '../harness/clients/problem.ts';
import { addUsers } from '../harness/clients/projects.ts';
import { RawConnection } from '../harness/clients/raw-http.ts';
import type { RowsPage } from '../harness/clients/tables.ts';
import { TusClient } from '../harness/clients/tus.ts';
import {
  finishUpload,
  makeModel,
  partPath,
  putPart,
  readUpload,
  someBytes,
} from '../harness/clients/uploads.ts';
import { openStackDatabase } from '../harness/databases/database.ts';
import { waitForEnd } from '../harness/hosts/remote.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

describeStack(undefined, 'uploads by tus 1.0', form => {
  const { stack, client } = useStack(form);
  const tus = new TusClient(client);
  let mid: string;

  beforeAll(async () => {
    ({ mid } = await makeModel(client));
  });

  const blob = (aid: string) => ({ mid, parser: 'blob', aid });
  /** A new upload; its path. */
  const begin = async (length: number, aid: string): Promise<string> => {
    const answer = await tus.create(length, blob(aid));
    expect([answer.status, answer.headers.get('Tus-Resumable')]).toEqual([201, '1.0.0']);
    const path = answer.headers.get('Location') ?? '';
    expect(path).toMatch(/^\/api\/tus\/\w+$/);
    return path;
  };
  const uidOf = (path: string) => path.split('/').at(-1) ?? '';
  const fileOf = async (aid: string) =>
    Buffer.from(await (await client.fetch(`/api/models/${mid}/files/${aid}`)).arrayBuffer());
  /** Waits until the upload has become its artifact. */
  const parsed = async (path: string) => {
    const { job } = await readUpload(client, uidOf(path));
    expect((await waitForEnd(client, job ?? '')).state).toBe('succeeded');
  };

  test('one file is one upload, finished with its last byte', async () => {
    const bytes = someBytes(300_000);
    const path = await begin(bytes.length, 'file');
    expect(await tus.offset(path)).toBe(0);
    const first = await tus.patch(path, 0, bytes.subarray(0, 100_000));
    expect([first.status, first.headers.get('Upload-Offset')]).toEqual([204, '100000']);
    expect(Date.parse(first.headers.get('Upload-Expires') ?? '')).toBeGreaterThan(Date.now());
    const between = await tus.head(path);
    expect(between.headers.get('Cache-Control')).toBe('no-store');
    expect(between.headers.get('Upload-Length')).toBe('300000');
    expect(between.headers.get('Upload-Metadata')).toContain('parser YmxvYg==');
    expect((await readUpload(client, uidOf(path))).state).toBe('open');
    const last = await tus.patch(path, 100_000, bytes.subarray(100_000));
    expect([last.status, last.headers.get('Upload-Expires')]).toEqual([204, null]);
    await parsed(path);
    expect((await fileOf('file')).equals(bytes)).toBe(true);
    const whole = await tus.head(path);
    expect([whole.headers.get('Upload-Offset'), whole.headers.get('Upload-Expires')]).toEqual([
      '300000',
      null,
    ]);
    await expectProblem(await tus.patch(path, 300_000, someBytes(1)), 409, 'conflict');
  });

  test('bytes put off when the upload expires', async () => {
    const path = await begin(10, 'put off');
    const sql = openStackDatabase(stack);
    await sql`update uploads set accessed = now() - interval '50 seconds' where uid = ${uidOf(path)}`;
    await sql.end();
    const expiry = (answer: Response) => Date.parse(answer.headers.get('Upload-Expires') ?? '');
    const before = expiry(await tus.head(path));
    expect(expiry(await tus.patch(path, 0, someBytes(5)))).toBeGreaterThan(before + 40_000);
  });

  test('the first bytes may come with the request, and a file may be empty', async () => {
    const bytes = someBytes(5_000);
    const begun = await tus.create(5_000, blob('with'), { bytes: bytes.subarray(0, 2_000) });
    expect([begun.status, begun.headers.get('Upload-Offset')]).toEqual([201, '2000']);
    const path = begun.headers.get('Location') ?? '';
    expect((await tus.patch(path, 2_000, bytes.subarray(2_000))).status).toBe(204);
    await parsed(path);
    expect((await fileOf('with')).equals(bytes)).toBe(true);
    const empty = await begin(0, 'empty');
    await parsed(empty);
    expect(await fileOf('empty')).toHaveLength(0);
  });

  test('an Idempotency-Key that a client sends with every upload keeps none from being parsed', async () => {
    const headers = { 'Idempotency-Key': 'the same' };
    for (const aid of ['keyed', 'keyed too']) {
      const bytes = someBytes(100);
      const begun = await tus.create(bytes.length, blob(aid), { bytes, headers });
      expect(begun.status).toBe(201);
      await parsed(begun.headers.get('Location') ?? '');
      expect((await fileOf(aid)).equals(bytes)).toBe(true);
    }
  });

  test('what of a cut request arrived is kept, and the upload goes on from there', async () => {
    const bytes = Buffer.from(someBytes(400_000));
    const path = await begin(bytes.length, 'cut');
    const connection = new RawConnection(stack.url);
    connection.write(
      `PATCH ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: ${client.authorization}\r\nTus-Resumable: 1.0.0\r\nUpload-Offset: 0\r\nContent-Type: application/offset+octet-stream\r\nContent-Length: ${bytes.length}\r\n\r\n`,
    );
    connection.write(bytes.subarray(0, 123_457));
    // Sent, and then cut: the bytes before the end of the connection arrive.
    connection.finish();
    await connection.closed();
    const offset = await tus.offset(path);
    expect(offset).toBeGreaterThan(0);
    expect(offset).toBeLessThanOrEqual(123_457);
    expect((await tus.patch(path, offset, bytes.subarray(offset))).status).toBe(204);
    await parsed(path);
    expect((await fileOf('cut')).equals(bytes)).toBe(true);
  });

  test('an upload that is resumed shortly before its end does not expire while its bytes come', {
    timeout: 120_000,
  }, async () => {
    const path = await begin(1_000, 'late');
    const sql = openStackDatabase(stack);
    const connection = new RawConnection(stack.url);
    const readAccessed = async () => {
      const [row] =
        await sql`select accessed, clock_timestamp() as now from uploads where uid = ${uidOf(path)}`;
      return row as { accessed: Date; now: Date };
    };
    try {
      await sql`update uploads set accessed = now() - interval '90 seconds' where uid = ${uidOf(path)}`;
      const before = await readAccessed();
      connection.write(
        `PATCH ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: ${client.authorization}\r\nTus-Resumable: 1.0.0\r\nUpload-Offset: 0\r\nContent-Type: application/offset+octet-stream\r\nContent-Length: 1000\r\n\r\nx`,
      );
      const used = await waitFor(
        async () => {
          const { accessed } = await readAccessed();
          return accessed > before.accessed ? accessed : undefined;
        },
        { what: 'the upload to be in use', timeoutMs: 90_000 },
      );
      // Long before the timer, and before the body is given up.
      expect(used.getTime() - before.now.getTime()).toBeLessThan(15_000);
    } finally {
      connection.finish();
      await connection.closed();
      await sql.end();
    }
  });

  test('a checksum is verified, and bytes that do not match it are not kept', async () => {
    const bytes = someBytes(10_000);
    const path = await begin(bytes.length, 'checked');
    const sum = (algorithm: string, of: Uint8Array) => ({
      'Upload-Checksum': `${algorithm} ${createHash(algorithm).update(of).digest('base64')}`,
    });
    const half = bytes.subarray(0, 5_000);
    const wrong = await tus.patch(path, 0, half, sum('sha1', bytes));
    await expectProblem(wrong, 460, 'checksum_mismatch');
    expect(await tus.offset(path)).toBe(0);
    await expectProblem(await tus.patch(path, 0, half, sum('md5', half)), 400, 'invalid_input');
    expect((await tus.patch(path, 0, half, sum('sha1', half))).status).toBe(204);
    const rest = bytes.subarray(5_000);
    expect((await tus.patch(path, 5_000, rest, sum('sha256', rest))).status).toBe(204);
    await parsed(path);
    expect((await fileOf('checked')).equals(bytes)).toBe(true);
  });

  test('the parameters of a parser are texts, or texts of JSON', async () => {
    const csv = Buffer.from('1;NA\n2;x\n');
    const metadata = {
      mid,
      parser: 'csv',
      aid: 'table',
      delimiter: ';',
      header: 'false',
      nulls: '["NA"]',
      filename: 'table.csv',
    };
    const begun = await tus.create(csv.length, metadata, { bytes: csv });
    expect(begun.status).toBe(201);
    await parsed(begun.headers.get('Location') ?? '');
    const { rows } = await client.get<RowsPage>(`/api/models/${mid}/tables/table/rows`);
    expect(rows).toEqual([
      [1, null],
      [2, 'x'],
    ]);
    for (const [wrong, field] of [
      [{ ...metadata, parser: 'none' }, 'parser'],
      [{ ...metadata, header: 'maybe' }, 'header'],
      [{ ...metadata, other: '1' }, 'other'],
      [{ mid, parser: 'blob' }, 'aids'],
    ] as const) {
      const answer = await tus.create(1, wrong as Record<string, string>);
      const { fields } = await expectProblem(answer, 400, 'invalid_input');
      expect(fields?.map(one => one.field)).toContain(field);
    }
  });

  test('other offsets, types, versions, lengths and users are refused', async () => {
    const { other } = await addUsers(stack, ['other']);
    const path = await begin(10, 'refused');
    await expectProblem(await tus.patch(path, 5, someBytes(1)), 409, 'conflict');
    await expectProblem(await tus.patch(path, 0, someBytes(11)), 413, 'payload_too_large');
    const type = { 'Content-Type': 'application/octet-stream' };
    await expectProblem(
      await tus.patch(path, 0, someBytes(1), type),
      415,
      'unsupported_media_type',
    );
    const version = { 'Tus-Resumable': '0.2.2' };
    const old = await tus.patch(path, 0, someBytes(1), version);
    await expectProblem(old, 412, 'precondition_failed');
    expect(old.headers.get('Tus-Version')).toBe('1.0.0');
    const long = await tus.create(1, blob('x'), { headers: { 'Upload-Length': 'x' } });
    const { fields } = await expectProblem(long, 400, 'invalid_input');
    expect(fields?.map(({ field }) => field)).toEqual(['Upload-Length']);
    expect((await new TusClient(other).head(path)).status).toBe(404);
    await expectProblem(await new TusClient(other).patch(path, 0, someBytes(1)), 404, 'not_found');

    // The parts of an upload by tus are its own.
    const part = await putPart(client, partPath(uidOf(path), 0, 0), someBytes(1));
    await expectProblem(part, 409, 'conflict');
    await expectProblem(await finishUpload(client, uidOf(path), [1]), 409, 'conflict');
    const options = await client.fetch('/api/tus', { method: 'OPTIONS' });
    expect(options.status).toBe(204);
    expect(options.headers.get('Tus-Extension')).toBe(
      'creation,creation-with-upload,termination,checksum,expiration',
    );

    expect((await tus.patch(path, 0, someBytes(4))).status).toBe(204);
    expect((await tus.terminate(path)).status).toBe(204);
    expect((await tus.head(path)).status).toBe(404);
    await expectProblem(await tus.terminate(path), 404, 'not_found');
  });

  test('of two requests with one offset at most one appends, and no byte comes twice', async () => {
    const bytes = someBytes(200_000);
    const path = await begin(bytes.length, 'raced');
    // The later one interrupts the earlier one, as of a client that has lost its connection.
    const both = await Promise.all([tus.patch(path, 0, bytes), tus.patch(path, 0, bytes)]);
    expect(both.filter(({ status }) => status === 204).length).toBeLessThanOrEqual(1);
    const offset = await tus.offset(path);
    if (offset < bytes.length)
      expect((await tus.patch(path, offset, bytes.subarray(offset))).status).toBe(204);
    await parsed(path);
    expect((await fileOf('raced')).equals(bytes)).toBe(true);
  });
});
