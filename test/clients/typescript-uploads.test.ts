import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Windlass } from '../../clients/typescript/src/index.ts';
import { openFile } from '../../clients/typescript/src/node.ts';
import { makeModel, readUpload } from '../harness/clients/uploads.ts';
import { connectWindlass, gather, useLink } from '../harness/clients/windlass-client.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { UNLIMITED, useStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const MB = 1 << 20;

describeStack(undefined, '@windlass/client uploads', form => {
  const { stack, client } = useStack(form, UNLIMITED);
  const link = useLink(stack);
  const directory = makeTempDir('client-uploads');
  afterAll(() => directory.remove());
  let windlass: Windlass;
  let mid: string;

  beforeAll(async () => {
    windlass = connectWindlass(stack, link.port);
    ({ mid } = await makeModel(client));
  });
  beforeEach(() => link.heal());

  const fileOf = async (aid: string) => {
    const answer = await client.fetch(`/api/models/${mid}/files/${encodeURIComponent(aid)}`);
    return Buffer.from(await answer.arrayBuffer());
  };

  test('files of which connections are cut arrive whole, and progress never goes back', async () => {
    const bytes = [randomBytes(20 * MB), randomBytes(5 * MB + 1), Buffer.alloc(0)];
    const files = bytes.map((of, n) => new File([of], `cut ${n}.bin`));
    const told: number[] = [];
    const sent: string[] = [];
    link.throttle('up', 30 * MB);
    link.cutAfter('up', 3 * MB);
    const job = await windlass.upload(files, {
      mid,
      parser: 'blob',
      partSize: MB,
      onProgress: ({ sent, total }) => {
        expect(total).toBe(25 * MB + 1);
        told.push(sent);
        if (sent % (5 * MB) === 0) link.cutAfter('up', 2 * MB);
      },
      onSent: id => sent.push(id),
    });
    expect(sent).toEqual([job.id]);
    expect(job).toMatchObject({ kind: 'parse', state: 'succeeded' });
    for (const [n, of] of bytes.entries())
      expect((await fileOf(`cut ${n}.bin`)).equals(of)).toBe(true);
    expect(told).toEqual(told.toSorted((a, b) => a - b));
    expect([told.at(0), told.at(-1)]).toEqual([0, 25 * MB + 1]);
    expect(link.connections.total).toBeGreaterThan(8);
  });

  test('an upload that was left is resumed with what is missing', async () => {
    const path = join(directory.path, 'left.bin');
    const bytes = randomBytes(30 * MB);
    writeFileSync(path, bytes);
    const leave = new AbortController();
    let id = '';
    link.throttle('up', 20 * MB);
    const file = await openFile(path);
    const left = windlass.upload(file, {
      mid,
      parser: 'blob',
      partSize: MB,
      signal: leave.signal,
      onBegin: upload => {
        id = upload;
      },
      onProgress: ({ sent }) => sent === 20 * MB && leave.abort(new Error('left')),
    });
    await expect(left).rejects.toThrow('left');
    const { parts, state } = await readUpload(client, id);
    expect(state).toBe('open');
    expect(parts.length).toBeGreaterThanOrEqual(20);
    // What was on its way is not counted below.
    link.cut();
    const before = link.bytes.up;
    const other = connectWindlass(stack, link.port);
    const job = await other.upload(file, { resume: id, partSize: MB });
    await file.close();
    expect(job).toMatchObject({ upload: id, state: 'succeeded' });
    expect((await fileOf('left.bin')).equals(bytes)).toBe(true);
    expect(link.bytes.up - before).toBeLessThan(11 * MB);
    // Once more: it is done.
    expect((await other.upload(new File([bytes], 'left.bin'), { resume: id })).id).toBe(job.id);
    const resume = (...files: Uint8Array<ArrayBuffer>[]) =>
      other.upload(
        files.map(each => new File([each], 'left.bin')),
        { resume: id },
      );
    await expect(resume(bytes.subarray(1))).rejects.toMatchObject({
      code: 'other_files',
      detail: `Upload ${id} was begun with other files: of left.bin ${bytes.length} bytes were sent, and it has ${bytes.length - 1}.`,
    });
    bytes[7 * MB] = (bytes[7 * MB] ?? 0) ^ 1;
    await expect(resume(bytes)).rejects.toMatchObject({
      code: 'other_files',
      detail: expect.stringContaining('left.bin has as many bytes, and not the same ones'),
    });
  });

  test('parts get smaller where the link is cut before one is through, and another process goes on with them', async () => {
    const bytes = randomBytes(20 * MB + 1);
    const file = new File([bytes], 'smaller.bin');
    const leave = new AbortController();
    let id = '';
    link.throttle('up', 5 * MB);
    const cutting = new AbortController();
    const cutOften = async () => {
      for (let from = link.bytes.up; !cutting.signal.aborted; from = link.bytes.up) {
        link.cutAfter('up', 3 * MB);
        await waitFor(() => cutting.signal.aborted || link.bytes.up >= from + 3 * MB, {
          what: 'the next cut',
        });
      }
    };
    const cut = cutOften();
    const told: number[] = [];
    const left = windlass.upload(file, {
      mid,
      parser: 'blob',
      signal: leave.signal,
      onBegin: upload => {
        id = upload;
      },
      onProgress: ({ sent }) => {
        told.push(sent);
        if (sent >= 6 * MB) leave.abort(new Error('left'));
      },
    });
    await expect(left).rejects.toThrow('left');
    const { parts } = await readUpload(client, id);
    expect(Math.max(...parts.map(({ size }) => size))).toBeLessThan(3 * MB);
    const other = connectWindlass(stack, link.port);
    const before = link.bytes.up;
    expect((await other.upload(file, { resume: id })).state).toBe('succeeded');
    cutting.abort();
    await cut;
    expect((await fileOf('smaller.bin')).equals(bytes)).toBe(true);
    expect(told).toEqual(told.toSorted((a, b) => a - b));
    // Most of it once, and no part for ever again.
    expect(link.bytes.up - before).toBeLessThan(40 * MB);
  }, 120_000);

  test('an open upload is resumed with no other file', async () => {
    const { id } = await client.post<{ id: string }>('/api/uploads', {
      mid,
      input: false,
      parser: 'blob',
      aids: ['one', 'two'],
    });
    const put = (part: string, body: string) =>
      client.fetch(`/api/uploads/${id}/files/${part}`, {
        method: 'PUT',
        headers: { 'Content-Type': 'application/octet-stream' },
        body,
      });
    for (const [part, body] of [
      ['0/parts/0', 'some'],
      ['0/parts/1', ' wor'],
      ['1/parts/1', 'r'],
    ] as const)
      expect((await put(part, body)).status).toBeLessThan(300);
    const { parts: before } = await readUpload(client, id);
    const resume = (...texts: string[]) =>
      windlass.upload(
        texts.map(text => new Blob([text])),
        { resume: id },
      );
    for (const [text, said] of [
      ['other words', 'bytes 0 to 4 of file 0 are not those that were sent'],
      ['some cords', 'bytes 4 to 8 of file 0 are not those that were sent'],
      ['some w', 'of file 0 8 bytes or more were sent, and it has 6'],
    ] as const)
      await expect(resume(text, 'more')).rejects.toMatchObject({
        code: 'other_files',
        detail: `Upload ${id} was begun with other files: ${said}.`,
      });
    expect((await readUpload(client, id)).parts).toEqual(before);
    await resume('some words', 'more');
    expect([await fileOf('one'), await fileOf('two')].map(String)).toEqual(['some words', 'more']);
  });

  test('of a file that is written meanwhile nothing is made', async () => {
    const path = join(directory.path, 'written.bin');
    writeFileSync(path, randomBytes(6 * MB));
    const file = await openFile(path);
    const begun = windlass.upload(file, {
      mid,
      parser: 'blob',
      partSize: MB,
      parallel: 1,
      onProgress: ({ sent }) => sent === 3 * MB && writeFileSync(path, randomBytes(6 * MB)),
    });
    await expect(begun).rejects.toMatchObject({ code: 'changed' });
    await file.close();
    expect((await client.fetch(`/api/models/${mid}/files/written.bin`)).status).toBe(404);
  });

  test('a part that was stored late, after all were compared, is sent again', async () => {
    const { id } = await client.post<{ id: string }>('/api/uploads', {
      mid,
      input: false,
      parser: 'blob',
      aids: ['late'],
    });
    const path = `/api/uploads/${id}/files/0/parts/0`;
    const put = (body: string) =>
      client.fetch(path, {
        method: 'PUT',
        body,
        headers: { 'Content-Type': 'application/octet-stream' },
      });
    await put('new words');
    let isLate = false;
    const send: typeof fetch = async (...given) => {
      const request = new Request(...given);
      if (request.url.endsWith('/finished') && !isLate) {
        isLate = true;
        await put('old words');
      }
      return fetch(request);
    };
    const late = connectWindlass(stack, link.port, { fetch: send });
    await late.upload(new Blob(['new words']), { resume: id });
    expect([isLate, String(await fileOf('late'))]).toEqual([true, 'new words']);
  });

  test('rows of a table come by the names of their columns, sorted and filtered, over pages', async () => {
    const lines = Array.from({ length: 25_000 }, (_, n) => `${n},${n % 7 ? 'clear' : 'rain'}\n`);
    const table = new File(['second,sky\n', ...lines], 'day');
    await windlass.upload(table, { mid, parser: 'csv', aids: ['day/1'], delimiter: ',' });
    const all = await gather(windlass.rows(mid, 'day/1'));
    expect(all).toHaveLength(25_000);
    expect(all.at(-1)).toEqual({ second: 24_999, sky: 'clear' });
    const latest = windlass.rows(mid, 'day/1', {
      sort: '-second',
      filter: ['sky:eq:rain', 'second:lt:1000'],
      limit: 2,
      offset: 1,
    });
    expect(await gather(latest)).toEqual([
      { second: 987, sky: 'rain' },
      { second: 980, sky: 'rain' },
    ]);
    for (const wrong of [{ limit: -1 }, { offset: NaN }])
      await expect(gather(windlass.rows(mid, 'day/1', wrong))).rejects.toMatchObject({
        code: 'invalid_input',
      });
  });

  test('rows of a table whose place another one takes are no mixture', async () => {
    const store = (of: number) =>
      windlass.upload(new File(['a\n', `${of}\n`.repeat(15_000)], 'twice'), {
        mid,
        parser: 'csv',
        aids: ['twice'],
        delimiter: ',',
      });
    await store(1);
    const rows = windlass.rows(mid, 'twice');
    expect((await rows.next()).value).toEqual({ a: 1 });
    await store(2);
    await expect(gather(rows)).rejects.toMatchObject({ code: 'changed' });
    const { tag } = await windlass.rowsPage(mid, 'twice');
    await windlass.rowsPage(mid, 'twice', { offset: 100, tag });
    await store(1);
    await expect(windlass.rowsPage(mid, 'twice', { offset: 200, tag })).rejects.toMatchObject({
      code: 'changed',
    });
  });

  test('what cannot be parsed fails with what the parser says', async () => {
    const table = new File(['a,b\n1,2\n1,2,3\n'], 'broken');
    await expect(windlass.upload(table, { mid, parser: 'csv' })).rejects.toMatchObject({
      name: 'WindlassError',
      code: 'parse_failed',
      status: 0,
      job: expect.stringMatching(/^[0-9a-z]{26}$/),
    });
    await expect(windlass.upload(table, { mid, parser: 'none' })).rejects.toMatchObject({
      status: 400,
      code: 'invalid_input',
      problem: { fields: [{ field: 'parser', problem: expect.any(String) }] },
    });
  });
});
