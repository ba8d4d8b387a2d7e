import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { expectProblem } from '../harness/clients/problem.ts';
import { senderOf } from '../harness/clients/sender.ts';
import { tusMetadata } from '../harness/clients/tus.ts';
import { drawFrames } from '../harness/files/draw-frames.ts';
import { type Job, openSession, waitForEnd } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';

type Fields = Record<string, string>;

describeStack(missingPrograms('sshd'), 'the HTTP surface', form => {
  const { stack, client, sshd } = useRemoteStack(form);
  const send = senderOf(client);
  let sid: string;

  beforeAll(async () => {
    sid = await openSession(client, sshd);
  });

  test('a collection is the same with a slash behind it', async () => {
    const json = { 'Content-Type': 'application/json' };
    const project = await send('POST', '/api/projects/', { name: 'behind a slash' }, json);
    expect(project.status).toBe(201);
    const credentials = { username: 'admin', password: stack.password };
    expect((await send('POST', '/api/login/', credentials, json)).status).toBe(200);
    const { id: pid } = (await project.json()) as { id: string };
    const model = await send(
      'POST',
      `/api/projects/${pid}/models/`,
      { 'model-type': 'any', name: 'a model' },
      json,
    );
    const { id: mid } = (await model.json()) as { id: string };
    const tus = { 'Tus-Resumable': '1.0.0' };
    const metadata = tusMetadata({ mid, parser: 'blob', aid: 'a' });
    const beginning = { ...tus, 'Upload-Length': '1', 'Upload-Metadata': metadata };
    const begun = await send('POST', '/api/tus/', undefined, beginning);
    expect(begun.status).toBe(201);
    const patched = await client.fetch(`${begun.headers.get('Location')}/`, {
      method: 'PATCH',
      headers: { ...tus, 'Content-Type': 'application/offset+octet-stream', 'Upload-Offset': '0' },
      body: 'x',
    });
    expect(patched.status).toBe(204);
    const unused = await send('DELETE', `/api/projects/${pid}/`);
    expect(await expectProblem(unused, 404, 'not_found')).toMatchObject({
      detail: `Not found: there is no /api/projects/${pid}/: it ends with a slash.`,
    });
    expect((await send('DELETE', `/api/projects/${pid}`)).status).toBe(204);
  });

  test('what is open to everyone exists once, without a prefix', async () => {
    for (const path of ['/', '/healthz', '/readyz']) {
      const response = await fetch(stack.url + path);
      expect([path, response.status]).toEqual([path, 200]);
      expect((await client.fetch(`/api${path}`)).status).toBe(404);
    }
    const page = await fetch(`${stack.url}/`, {
      headers: { Accept: 'text/html' },
      redirect: 'manual',
    });
    expect([page.status, page.headers.get('Location')]).toEqual([302, '/console/']);
    const about = await fetch(`${stack.url}/`, { headers: { Accept: 'application/json' } });
    expect(await about.json()).toMatchObject({ name: 'Windlass' });
    expect(await (await fetch(`${stack.url}/readyz`)).json()).toEqual({
      ready: true,
      checks: { database: null, objects: null, queue: null, work: null },
      degraded: [],
      workers: 1,
    });
  });

  test('401 says which credentials; a script gets Bearer, so that no dialog pops up', async () => {
    const ask = (headers: Fields) => fetch(`${stack.url}/api/users/-`, { headers });
    const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;
    const refused: Fields[] = [
      {},
      { Authorization: basic(`admin:wrong${stack.password}`) },
      { Authorization: basic(`nobody:${stack.password}`) },
      { Authorization: basic(`admin\0:${stack.password}`) },
      { Authorization: basic('admin') },
      { Authorization: 'Basic !!!' },
      { Authorization: 'Bearer abc' },
    ];
    for (const headers of refused) {
      const response = await ask(headers);
      await expectProblem(response, 401, 'unauthorized');
      expect(response.headers.get('WWW-Authenticate')).toMatch(/^Basic realm=/);
    }
    for (const headers of [
      { 'X-Requested-With': 'XMLHttpRequest' },
      { 'Sec-Fetch-Dest': 'video' },
    ] as Fields[]) {
      const ofPage = await ask(headers);
      expect([ofPage.status, ofPage.headers.get('WWW-Authenticate')]).toEqual([401, 'Bearer']);
    }
    const lower = basic(`admin:${stack.password}`).replace('Basic', 'basic');
    expect((await ask({ Authorization: lower })).status).toBe(200);
  });

  test('404 for what is not there, 405 names what is allowed', async () => {
    await expectProblem(await client.fetch('/api/nothing'), 404, 'not_found');
    await expectProblem(await client.fetch('/api/jobs/%00'), 404, 'not_found');
    const methods: [string, string, string][] = [
      ['PATCH', '/api/users', 'GET, POST, HEAD'],
      ['DELETE', '/api/users/-', 'GET, HEAD'],
      ['GET', '/api/remotes/launch', 'POST'],
      ['PUT', `/api/remotes/${sid}`, 'GET, DELETE, HEAD'],
      ['OPTIONS', '/api/jobs', 'GET, HEAD'],
      ['POST', '/healthz', 'GET, HEAD'],
    ];
    for (const [method, path, allow] of methods) {
      const response = await client.fetch(path, { method });
      await expectProblem(response, 405, 'method_not_allowed');
      expect([method, path, response.headers.get('Allow')]).toEqual([method, path, allow]);
    }
  });

  test('a request id is taken over where it is a sound one, and else made', async () => {
    const ask = async (id: string) =>
      (await client.fetch('/healthz', { headers: { 'X-Request-Id': id } })).headers.get(
        'X-Request-Id',
      );
    expect(await ask('trace-1.2:3')).toBe('trace-1.2:3');
    for (const bad of ['a b', 'x'.repeat(129), '<script>'])
      expect(await ask(bad)).toMatch(/^[0-9a-f]{8}-[0-9a-f-]{27}$/);
  });

  describe('ranges of a video', () => {
    let at: string;
    let whole: Buffer;
    let tag: string;

    beforeAll(async () => {
      const images = await drawFrames({ folder: join(sshd.home, 'frames'), count: 12 });
      const response = await send('POST', `/api/remotes/${sid}/videos`, {
        'content-type': 'video/mp4',
        images,
      });
      const { vsid } = (await response.json()) as { vsid: string };
      expect((await waitForEnd(client, vsid)).state).toBe('succeeded');
      at = `/api/remotes/${sid}/videos/${vsid}`;
      const found = await client.fetch(at);
      expect(found.status).toBe(200);
      expect(found.headers.get('Accept-Ranges')).toBe('bytes');
      tag = found.headers.get('ETag') ?? '';
      whole = Buffer.from(await found.arrayBuffer());
      expect(found.headers.get('Content-Length')).toBe(String(whole.length));
    });

    const read = async (headers: Fields, method = 'GET') => {
      const response = await client.fetch(at, { method, headers });
      return {
        status: response.status,
        range: response.headers.get('Content-Range'),
        length: response.headers.get('Content-Length'),
        response,
        bytes: Buffer.from(await response.arrayBuffer()),
      };
    };

    test('one range is 206 with these very bytes', async () => {
      const size = whole.length;
      const ranges: [string, number, number][] = [
        ['bytes=0-0', 0, 0],
        ['bytes=100-199', 100, 199],
        ['bytes=100-', 100, size - 1],
        ['bytes=-100', size - 100, size - 1],
        [`bytes=-${size + 5}`, 0, size - 1],
        [`bytes=10-${size + 5}`, 10, size - 1],
        ['bytes=10-99999999999999999999999', 10, size - 1],
        ['BYTES=1-2', 1, 2],
        [`bytes=${size - 1}-`, size - 1, size - 1],
      ];
      for (const [range, first, last] of ranges) {
        const got = await read({ Range: range });
        expect([range, got.status, got.range, got.length]).toEqual([
          range,
          206,
          `bytes ${first}-${last}/${size}`,
          String(last - first + 1),
        ]);
        expect(got.bytes.equals(whole.subarray(first, last + 1))).toBe(true);
        expect(got.response.headers.get('ETag')).toBe(tag);
      }
    });

    test('malformed, several and other units are answered with the whole', async () => {
      for (const range of [
        'bytes=',
        'bytes=-',
        'bytes=5-3',
        'bytes=a-b',
        'bytes=1',
        'bytes=0-1,4-5',
        'lines=1-2',
        'bytes 1-2',
        'bytes=1-2-3',
      ]) {
        const got = await read({ Range: range });
        expect([range, got.status, got.range]).toEqual([range, 200, null]);
        expect(got.bytes.equals(whole)).toBe(true);
      }
    });

    test('416 names the size', async () => {
      for (const range of [`bytes=${whole.length}-`, 'bytes=-0', 'bytes=99999999999-']) {
        const response = await client.fetch(at, { headers: { Range: range } });
        expect([range, response.headers.get('Content-Range')]).toEqual([
          range,
          `bytes */${whole.length}`,
        ]);
        await expectProblem(response, 416, 'range_not_satisfiable');
      }
    });

    test('If-Range, If-None-Match, If-Modified-Since, If-Match and HEAD', async () => {
      expect((await read({ Range: 'bytes=0-9', 'If-Range': tag })).status).toBe(206);
      const modified = (await read({})).response.headers.get('Last-Modified') ?? '';
      for (const condition of ['"other"', `W/${tag}`, modified]) {
        const got = await read({ Range: 'bytes=0-9', 'If-Range': condition });
        expect([condition, got.status, got.bytes.length]).toEqual([condition, 200, whole.length]);
      }
      const unchanged: Fields[] = [
        { 'If-None-Match': tag },
        { 'If-None-Match': `W/${tag}`, Range: 'bytes=0-9' },
        { 'If-Modified-Since': modified },
      ];
      for (const headers of unchanged) {
        const got = await read(headers);
        expect([headers, got.status, got.bytes.length]).toEqual([headers, 304, 0]);
      }
      // If-None-Match alone decides where it is given (RFC 9110, 13.1.3).
      const both = await read({ 'If-None-Match': '"other"', 'If-Modified-Since': modified });
      expect(both.status).toBe(200);
      expect((await read({ 'If-Modified-Since': 'Sat, 01 Jan 2000 00:00:00 GMT' })).status).toBe(
        200,
      );
      expect((await read({ 'If-Match': tag })).status).toBe(200);
      expect((await read({ 'If-Match': '"other"' })).status).toBe(412);
      // A range is for GET alone (14.2).
      const head = await read({ Range: 'bytes=0-9' }, 'HEAD');
      expect([head.status, head.length, head.bytes.length]).toEqual([200, String(whole.length), 0]);
    });

    test('the job has the same bytes as its result', async () => {
      const vsid = at.split('/').at(-1);
      const response = await client.fetch(`/api/jobs/${vsid}/result`, {
        headers: { Range: 'bytes=5-9' },
      });
      expect([response.status, response.headers.get('Content-Type')]).toEqual([206, 'video/mp4']);
      expect(Buffer.from(await response.arrayBuffer()).equals(whole.subarray(5, 10))).toBe(true);
      const job = await client.get<Job>(`/api/jobs/${vsid}`);
      expect(job.result).not.toHaveProperty('object');
    });
  });
});
