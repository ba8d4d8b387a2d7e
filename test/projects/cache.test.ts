import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import type { Client } from '../../servers/api-client.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { addUsers, makeProject, PEOPLE, type People } from '../harness/clients/projects.ts';
import { whileLocked } from '../harness/databases/while-locked.ts';
import { drawFrames } from '../harness/files/draw-frames.ts';
import { type Job, openSession, waitForEnd } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack, useStackDatabase } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

interface Entries {
  items: { key: string; type: string; size: number; frames: number | null }[];
  next: string | null;
}

describeStack(missingPrograms('sshd', 'ffmpeg'), 'project cache', form => {
  const { stack, sshd } = useRemoteStack(form);
  const database = useStackDatabase(stack);
  let people: People;
  let sid: string;
  let images: string[];

  beforeAll(async () => {
    people = await addUsers(stack, PEOPLE);
    sid = await openSession(people.owner, sshd);
    images = await drawFrames({ folder: join(sshd.home, 'frames'), count: 10 });
  });

  const post = (body: object, { client = people.owner, session = sid } = {}) =>
    client.fetch(`/api/remotes/${session}/videos`, {
      method: 'POST',
      body: JSON.stringify({ 'content-type': 'video/mp4', images, ...body }),
    });
  const start = async (body: object = {}, by: { client?: Client; session?: string } = {}) => {
    const response = await post(body, by);
    expect(response.status).toBe(202);
    const { vsid } = (await response.json()) as { vsid: string };
    return { vsid, at: `/api/remotes/${by.session ?? sid}/videos/${vsid}` };
  };
  const make = async (body: object = {}, by: { client?: Client; session?: string } = {}) => {
    const video = await start(body, by);
    const job = await waitForEnd(by.client ?? people.owner, video.vsid);
    expect([job.state, job.error]).toEqual(['succeeded', null]);
    return { ...video, bytes: await read(by.client ?? people.owner, video.at) };
  };
  const read = async (client: Client, path: string) => {
    const response = await client.fetch(path);
    expect([path, response.status]).toEqual([path, 200]);
    return Buffer.from(await response.arrayBuffer());
  };
  const query = (project: string, key: string) =>
    `?${new URLSearchParams({ cache: 'project', project, key })}`;
  const keysOf = async (pid: string) =>
    (await people.reader.get<Entries>(`/api/projects/${pid}/cache`)).items.map(({ key }) => key);

  test('a video for the cache of a project that its user may no longer write to is the user’s alone', async () => {
    const pid = await makeProject(people);
    const session = await openSession(people.writer, sshd);
    const many = Array.from({ length: 40 }, () => images).flat();
    const { vsid, at } = await start(
      { images: many, project: pid, key: 'final' },
      { client: people.writer, session },
    );
    const [job] = await whileLocked(
      stack,
      async sql => {
        await sql`select from projects where pid = ${pid} for update`;
        await sql`update project_members set role = 'reader'
          where project = ${pid} and username = 'writer'`;
      },
      () => [waitForEnd(people.writer, vsid)],
    );
    const uncached = 'Forbidden: you may no longer write to the project that this was for.';
    expect(job).toMatchObject({ state: 'succeeded', result: { uncached } });
    expect(await keysOf(pid)).toEqual([]);
    expect((await read(people.writer, at)).length).toBe(job?.result?.bytes);
  });

  test('a video is cached as it is fetched, and read by who reads the project', async () => {
    const pid = await makeProject(people);
    const { at, bytes } = await make({ 'content-type': 'video/webm' });
    const cache = `/api/projects/${pid}/cache`;
    const head = await people.owner.fetch(`${at}${query(pid, 'head')}`, { method: 'HEAD' });
    expect(head.status).toBe(200);
    expect(await keysOf(pid)).toEqual([]);
    expect((await read(people.owner, `${at}${query(pid, 'a/b c')}`)).equals(bytes)).toBe(true);
    for (const path of [`${cache}/a/b%20c`, `${cache}/a%2Fb%20c`, `${cache.slice(4)}/a/b%20c`]) {
      expect((await read(people.reader, path)).equals(bytes)).toBe(true);
    }
    const part = await people.reader.fetch(`${cache}/a/b%20c`, {
      headers: { Range: 'bytes=2-5' },
    });
    expect([
      part.status,
      part.headers.get('Content-Type'),
      part.headers.get('Content-Range'),
    ]).toEqual([206, 'video/webm', `bytes 2-5/${bytes.length}`]);
    expect(Buffer.from(await part.arrayBuffer()).equals(bytes.subarray(2, 6))).toBe(true);
    const whole = await people.reader.fetch(`${cache}/a/b%20c`, { method: 'HEAD' });
    expect(whole.headers.get('Content-Length')).toBe(String(bytes.length));
    const unchanged = await people.reader.fetch(`${cache}/a/b%20c`, {
      headers: { 'If-None-Match': whole.headers.get('ETag') ?? '' },
    });
    expect(unchanged.status).toBe(304);

    for (const key of ['zz', 'ä😀', 'trailing/', '%2F', 'x'.repeat(900)]) {
      const part = await people.owner.fetch(`${at}${query(pid, key)}`, {
        headers: { Range: 'bytes=0-0' },
      });
      expect(part.status).toBe(206);
      const found = await people.reader.fetch(`${cache}/${encodeURIComponent(key)}`);
      expect([key, found.status]).toEqual([key, 200]);
      await found.arrayBuffer();
    }
    const keys = [];
    let after = '';
    for (;;) {
      const { items, next } = await people.reader.get<Entries>(`${cache}?limit=2${after}`);
      expect(items.every(({ type, size }) => type === 'video/webm' && size === bytes.length)).toBe(
        true,
      );
      keys.push(...items.map(({ key }) => key));
      if (next === null) break;
      after = `&after=${encodeURIComponent(next)}`;
    }
    expect(keys.sort()).toEqual(['a/b c', 'zz', 'ä😀', 'trailing/', '%2F', 'x'.repeat(900)].sort());
  });

  test('what is missing or wrong is said in the words of the interface', async () => {
    const pid = await makeProject(people);
    const { at } = await make();
    const cases: [string, string, string, string | undefined][] = [
      ['?cache=disk&project=x&key=y', 'unknown_cache_type', 'Unknown cache type: disk.', undefined],
      ['?cache=', 'unknown_cache_type', 'Unknown cache type: .', undefined],
      ['?cache=project&key=y', 'missing_project', 'Must specify project id.', undefined],
      ['?cache=project&project=&key=y', 'missing_project', 'Must specify project id.', undefined],
      [`?cache=project&project=${pid}`, 'missing_cache_key', 'Must specify cache key.', undefined],
      [
        `?cache=project&project=${pid}&key=`,
        'missing_cache_key',
        'Must specify cache key.',
        undefined,
      ],
      [query(pid, 'x'.repeat(901)), 'invalid_input', 'Invalid parameters: key', 'key'],
      [query(pid, 'é\n'), 'invalid_input', 'Invalid parameters: key', 'key'],
      [query(pid, '漢'.repeat(850)), 'invalid_input', 'Invalid parameters: key', 'key'],
      [query(pid, '..'), 'invalid_input', 'Invalid parameters: key', 'key'],
      [query(pid, 'a/./b'), 'invalid_input', 'Invalid parameters: key', 'key'],
      [`${query(pid, 'x')}&key=y`, 'invalid_input', 'Invalid parameters: key', 'key'],
    ];
    for (const [search, code, words, field] of cases) {
      const problem = await expectProblem(await people.owner.fetch(`${at}${search}`), 400, code);
      expect(problem.detail.startsWith(words)).toBe(true);
      expect(problem.fields?.[0]?.field).toBe(field);
    }
    for (const [body, code] of [
      [{ project: pid }, 'missing_cache_key'],
      [{ key: 'x' }, 'missing_project'],
      [{ project: pid, key: 'a\0' }, 'invalid_input'],
      [{ project: pid, key: '..' }, 'invalid_input'],
      [{ project: pid, key: 'a/..' }, 'invalid_input'],
    ] as const)
      await expectProblem(await post(body), 400, code);
    expect(await keysOf(pid)).toEqual([]);
    // Without cache the rest means nothing, and a player's own parameters neither.
    await read(people.owner, `${at}?project=${pid}&key=x&t=1`);
    for (const key of ['none', 'x'.repeat(901), '%FF'])
      expect(
        [400, 404].includes(
          (await people.reader.fetch(`/api/projects/${pid}/cache/${key}`)).status,
        ),
      ).toBe(true);
    expect(await keysOf(pid)).toEqual([]);
  });

  test('an older entry under a key that an address cannot have is removed, and not its project', async () => {
    const pid = await makeProject(people);
    const { vsid } = await make();
    await database`
      insert into cache_entries (project, key, object, type, size)
      select ${pid}, '..', result ->> 'object', 'video/mp4', 1 from jobs where id = ${vsid}`;
    const headers = { Authorization: people.owner.authorization };
    // fetch() would resolve it.
    const path = `/api/projects/${pid}/cache/%2E%2E`;
    const asked = request(stack.url, { path, method: 'DELETE', headers }).end();
    const [{ statusCode }] = (await once(asked, 'response')) as [IncomingMessage];
    expect(statusCode).toBe(204);
    expect(await keysOf(pid)).toEqual([]);
  });

  test('the same video again changes nothing, another one replaces it, and DELETE removes it', async () => {
    const pid = await makeProject(people);
    const [first, second] = [await make(), await make({ fps: 5, width: 32 })];
    const path = `/api/projects/${pid}/cache/key`;
    const entry = async () => {
      const { items } = await people.owner.get<Entries>(`/api/projects/${pid}/cache`);
      return items;
    };
    await read(people.owner, `${first.at}${query(pid, 'key')}`);
    const before = await entry();
    await Promise.all(
      Array.from({ length: 5 }, () => read(people.owner, `${first.at}${query(pid, 'key')}`)),
    );
    expect(await entry()).toEqual(before);
    await read(people.owner, `${second.at}${query(pid, 'key')}`);
    expect(await entry()).toMatchObject([{ key: 'key', size: second.bytes.length, frames: 10 }]);
    expect((await read(people.reader, path)).equals(second.bytes)).toBe(true);
    await Promise.all(
      [first, second, first, second].map(({ at }) =>
        read(people.owner, `${at}${query(pid, 'contested')}`),
      ),
    );
    expect(await keysOf(pid)).toEqual(['contested', 'key']);

    const remove = (client: Client) => client.fetch(path, { method: 'DELETE' });
    await expectProblem(await remove(people.reader), 403, 'forbidden');
    await expectProblem(await remove(people.stranger), 404, 'not_found');
    const gone = await remove(people.writer);
    expect([gone.status, gone.statusText]).toEqual([204, 'Cache object deleted.']);
    await expectProblem(await remove(people.writer), 404, 'not_found');
    await expectProblem(await people.reader.fetch(path), 404, 'not_found');
    expect((await people.owner.fetch(first.at)).status).toBe(200);
  });

  test('a GET that is refused stores nothing', async () => {
    const pid = await makeProject(people);
    const [{ at, bytes }, other] = [await make(), await make({ fps: 5 })];
    await read(people.owner, `${other.at}${query(pid, 'taken')}`);
    const { headers } = await people.owner.fetch(at, { method: 'HEAD' });
    const tag = headers.get('ETag') ?? '';
    const get = (key: string, headers: Record<string, string>) =>
      people.owner.fetch(`${at}${query(pid, key)}`, { headers });
    for (const key of ['new', 'taken']) {
      await expectProblem(await get(key, { 'If-Match': '"other"' }), 412, 'precondition_failed');
      const since = { 'If-Unmodified-Since': new Date(0).toUTCString() };
      await expectProblem(await get(key, since), 412, 'precondition_failed');
      const beyond = { Range: `bytes=${bytes.length}-`, 'If-Match': tag };
      await expectProblem(await get(key, beyond), 416, 'range_not_satisfiable');
    }
    expect(await keysOf(pid)).toEqual(['taken']);
    const taken = await read(people.reader, `/api/projects/${pid}/cache/taken`);
    expect(taken.equals(other.bytes)).toBe(true);
    const part = await get('new', { Range: 'bytes=0-0', 'If-Match': tag });
    expect([part.status, (await part.arrayBuffer()).byteLength]).toEqual([206, 1]);
    expect(await keysOf(pid)).toEqual(['new', 'taken']);
  });

  test('only writers put into the cache, by either way', async () => {
    const pid = await makeProject(people);
    for (const [name, status, code] of [
      ['reader', 403, 'forbidden'],
      ['stranger', 404, 'not_found'],
      ['writer', 200, ''],
    ] as const) {
      const client = people[name];
      const session = await openSession(client, sshd);
      const { at } = await make({}, { client, session });
      const fetched = await client.fetch(`${at}${query(pid, name)}`);
      const started = await post({ project: pid, key: `${name} 2` }, { client, session });
      if (status === 200) {
        await fetched.arrayBuffer();
        expect([fetched.status, started.status]).toEqual([200, 202]);
        const { vsid } = (await started.json()) as { vsid: string };
        await waitForEnd(client, vsid);
      } else {
        await expectProblem(fetched, status, code);
        await expectProblem(started, status, code);
      }
    }
    expect(await keysOf(pid)).toEqual(['writer', 'writer 2']);
  });

  test('asked for with the video, it is cached when that is ready, and outlives its session', async () => {
    const pid = await makeProject(people);
    const session = await openSession(people.owner, sshd);
    const { vsid, bytes } = await make({ project: pid, key: 'runs/1.mp4' }, { session });
    await people.owner.delete(`/api/remotes/${session}`);
    const path = `/api/projects/${pid}/cache/runs/1.mp4`;
    expect((await read(people.reader, path)).equals(bytes)).toBe(true);
    const { result } = await people.owner.get<Job>(`/api/jobs/${vsid}`);
    expect(result).not.toHaveProperty('object');

    const again = await make({ project: pid, key: 'runs/1.mp4', fps: 5 });
    expect((await read(people.reader, path)).equals(again.bytes)).toBe(true);
    expect(await keysOf(pid)).toEqual(['runs/1.mp4']);
  });

  test('a video for a project that is deleted meanwhile comes to its end, and is nowhere', async () => {
    const pid = await makeProject(people);
    const many = Array.from({ length: 60 }, () => images).flat();
    const { vsid, at } = await start({ project: pid, key: 'late', images: many, encode: 'worker' });
    await waitFor(
      async () => (await people.owner.get<Job>(`/api/jobs/${vsid}`)).state === 'running',
      { what: 'the video to run', timeoutMs: 30_000 },
    );
    await people.owner.delete(`/api/projects/${pid}`);
    const job = await waitForEnd(people.owner, vsid);
    expect(['cancelled', 'failed']).toContain(job.state);
    expect(['cancelled', 'conflict']).toContain(job.error?.code);
    await expectProblem(await people.owner.fetch(at), 409, 'conflict');
    await expectProblem(
      await people.owner.fetch(`/api/projects/${pid}/cache/late`),
      404,
      'not_found',
    );
    const retry = await people.owner.fetch(`/api/jobs/${vsid}/retry`, { method: 'POST' });
    await expectProblem(retry, 404, 'not_found');
  });

  test('projects deleted just as their videos become ready never leave a job that does not end', async () => {
    const videos = [];
    for (let i = 0; i < 6; i++) {
      const pid = await makeProject(people, `ending ${i}`);
      videos.push({ pid, ...(await start({ project: pid, key: 'k' })) });
    }
    await Promise.all(
      videos.map(async ({ pid, vsid }) => {
        await people.owner.fetch(`/api/jobs/${vsid}`, { headers: { Prefer: 'wait=30' } });
        await waitFor(
          async () => {
            const { state, progress } = await people.owner.get<Job>(`/api/jobs/${vsid}`);
            return state === 'succeeded' || (state === 'running' && (progress ?? 0) > 0);
          },
          { what: 'progress', timeoutMs: 60_000, intervalMs: 5 },
        );
        const gone = await people.owner.fetch(`/api/projects/${pid}`, { method: 'DELETE' });
        expect(gone.status).toBe(204);
      }),
    );
    for (const { vsid } of videos) {
      const job = await waitForEnd(people.owner, vsid);
      expect(['succeeded', 'cancelled', 'conflict']).toContain(job.error?.code ?? job.state);
    }
  });
});
