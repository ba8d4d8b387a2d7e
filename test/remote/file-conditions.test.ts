import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { expectProblem } from '../harness/clients/problem.ts';
import { openSession } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

describeStack(missingPrograms('sshd'), 'requests for files of a host', form => {
  const { client, sshd } = useRemoteStack(form);
  let sid: string;
  let folder: string;
  beforeAll(async () => {
    sid = await openSession(client, sshd);
    folder = join(sshd.home, 'conditions');
    mkdirSync(folder);
  });
  const send = (
    method: string,
    path: string,
    headers: Record<string, string> = {},
    body?: string,
  ) => {
    const address = `/api/remotes/${sid}/file${encodeURI(path)}`;
    const type = { 'Content-Type': 'application/octet-stream' };
    return client.fetch(address, { method, headers: { ...(body && type), ...headers }, body });
  };

  test('a part of a file, or an encoded one, is not taken for the whole', async () => {
    const path = join(folder, 'whole');
    writeFileSync(path, 'before');
    const put = (headers: Record<string, string>) => send('PUT', path, headers, 'rest');
    await expectProblem(await put({ 'Content-Range': 'bytes 2-5/6' }), 400, 'bad_request');
    await expectProblem(await put({ 'Content-Encoding': 'gzip' }), 415, 'unsupported_media_type');
    expect(readFileSync(path, 'utf8')).toBe('before');
    expect((await put({ 'Content-Encoding': 'identity' })).status).toBe(200);
  });

  test('If-Match and If-None-Match hold of what is read', async () => {
    const path = join(folder, 'read');
    writeFileSync(path, 'x'.repeat(1_000_000));
    const first = await send('GET', path);
    const tag = first.headers.get('ETag') ?? '';
    await first.arrayBuffer();
    for (const method of ['GET', 'HEAD']) {
      for (const names of [tag, `"x", W/${tag}`, '*']) {
        const unchanged = await send(method, path, { 'If-None-Match': names, Range: 'bytes=0-9' });
        expect([unchanged.status, await unchanged.text()]).toEqual([304, '']);
        expect(unchanged.headers.get('ETag')).toBe(tag);
      }
      expect((await send(method, path, { 'If-None-Match': '"x"' })).status).toBe(200);
      for (const names of [tag, `"x", ${tag}`, '*'])
        expect((await send(method, path, { 'If-Match': names })).status).toBe(200);
      for (const names of ['"x"', `W/${tag}`])
        expect((await send(method, path, { 'If-Match': names })).status).toBe(412);
    }
    // The readings end, too.
    const underWay = async () => {
      const { items } = await client.get<{ items: { finished: string | null }[] }>(
        '/api/jobs?kind=file',
      );
      expect(items.length).toBeGreaterThan(0);
      return items.some(({ finished }) => finished === null);
    };
    await waitFor(async () => !(await underWay()), { what: 'the end of the readings' });
  });

  test('each of many changes at once is of the state that it names', async () => {
    const path = join(folder, 'counter');
    writeFileSync(path, '000000');
    const changes = 4;
    const count = async () => {
      let done = 0;
      while (done < changes) {
        const read = await send('GET', path);
        const condition = { 'If-Match': read.headers.get('ETag') ?? '' };
        const next = String(Number(await read.text()) + 1).padStart(6, '0');
        const { status } = await send('PUT', path, condition, next);
        expect([200, 412]).toContain(status);
        if (status === 200) done++;
      }
    };
    await Promise.all([count(), count(), count(), count()]);
    expect(readFileSync(path, 'utf8')).toBe('000016');
    // Of a change and a removal that name the same state, one is refused, through a link too.
    const link = join(folder, 'link');
    for (const name of [path, link]) {
      for (let round = 0; round < 5; round++) {
        writeFileSync(path, 'before');
        if (!existsSync(link)) symlinkSync('counter', link);
        const condition = { 'If-Match': (await send('HEAD', name)).headers.get('ETag') ?? '' };
        const answers = await Promise.all([
          send('DELETE', name, condition),
          send('PUT', name, condition, 'after'),
        ]);
        const statuses = answers.map(({ status }) => status);
        expect([
          [204, 412],
          [412, 200],
        ]).toContainEqual(statuses);
      }
    }
  });

  test('a name that stands for bytes which are not UTF-8 is neither written nor removed', async () => {
    const path = join(folder, 'M\ufffdller', 'file');
    for (const method of ['PUT', 'DELETE'])
      await expectProblem(
        await send(method, path, {}, method === 'PUT' ? 'x' : undefined),
        400,
        'invalid_input',
      );
    expect(existsSync(path)).toBe(false);
    expect((await send('GET', path)).status).toBe(404);
  });
});
