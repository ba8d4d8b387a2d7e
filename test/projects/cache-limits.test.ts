import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import sharp from 'sharp';
import { beforeAll, expect, test } from 'vitest';
import { expectProblem } from '../harness/clients/problem.ts';
import { addUser } from '../harness/clients/users.ts';
import { drawFrames } from '../harness/files/draw-frames.ts';
import { openSession, waitForEnd } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { useRemoteStack, useStackDatabase } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

const LIMIT = 100_000;
const USER_LIMIT = 2_000_000;
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

interface Project {
  cache: { bytes: number; limit: number; oldest: string | null };
}

describeStack(missingPrograms('sshd', 'ffmpeg'), 'limits of project caches', form => {
  const { client, sshd, stack } = useRemoteStack(form, {
    env: {
      LIMIT_CACHE_BYTES: String(LIMIT),
      LIMIT_CACHE_DAYS: '30',
      LIMIT_USER_BYTES: String(USER_LIMIT),
    },
  });
  const database = useStackDatabase(stack);
  let sid: string;
  let video: { at: string; vsid: string };

  beforeAll(async () => {
    sid = await openSession(client, sshd);
    video = await make(await drawFrames({ folder: join(sshd.home, 'frames'), count: 3 }));
  });

  async function make(images: string[], options: object = {}) {
    const body = { 'content-type': 'video/mp4', images, ...options };
    const { vsid } = await client.post<{ vsid: string }>(`/api/remotes/${sid}/videos`, body);
    expect(await waitForEnd(client, vsid)).toMatchObject({ state: 'succeeded' });
    return { vsid, at: `/api/remotes/${sid}/videos/${vsid}` };
  }
  const makeProject = async (name: string) =>
    (await client.post<{ id: string }>('/api/projects', { name })).id;
  /** Puts entries that refer to the video, which are said to have these sizes and to have been stored `ago` ms ago. */
  const put = (pid: string, entries: { key: string; size?: number; ago: number }[]) => {
    const rows = entries.map(({ key, size = 10, ago }) => ({
      key,
      size,
      used: new Date(Date.now() - ago).toISOString(),
    }));
    return database`
      insert into cache_entries (project, key, object, type, size, created, used)
      select ${pid}, key, (select result ->> 'object' from jobs where id = ${video.vsid}), 'video/mp4', size, used, used
      from json_to_recordset(${JSON.stringify(rows)}::text::json) as (key text, size bigint, used timestamptz)`;
  };
  const keysOf = async (pid: string) =>
    (await database`select key from cache_entries where project = ${pid} order by key`).map(
      ({ key }) => key as string,
    );
  const waitForKeys = (pid: string, keys: string[]) =>
    waitFor(async () => (await keysOf(pid)).join() === keys.join(), {
      what: `the cache to hold ${keys.join(', ')}`,
      timeoutMs: 60_000,
    });
  const cacheOf = async (pid: string) => {
    const answer = await client.fetch(`/api/projects/${pid}`);
    return { ...((await answer.json()) as Project).cache, tag: answer.headers.get('ETag') ?? '' };
  };
  const fetchEntry = async (pid: string, key: string) => {
    const answer = await client.fetch(`/api/projects/${pid}/cache/${key}`);
    return { status: answer.status, bytes: (await answer.arrayBuffer()).byteLength };
  };

  test('what was not used for longest goes first, and the project tells before', async () => {
    const pid = await makeProject('by use');
    expect(await cacheOf(pid)).toMatchObject({ bytes: 0, limit: LIMIT, oldest: null });
    await put(pid, [
      { key: 'a', size: 45_000, ago: 3 * HOUR },
      { key: 'b', size: 45_000, ago: 2 * HOUR },
    ]);
    const before = await cacheOf(pid);
    expect(before).toMatchObject({ bytes: 90_000, limit: LIMIT });
    expect(Date.now() - Date.parse(before.oldest ?? '')).toBeGreaterThan(3 * HOUR);
    expect(await fetchEntry(pid, 'a')).toMatchObject({ status: 200 });
    const after = await cacheOf(pid);
    expect(Date.now() - Date.parse(after.oldest ?? '')).toBeLessThan(3 * HOUR);
    expect(after.tag).not.toBe(before.tag);
    const fresh = await client.fetch(`/api/projects/${pid}`, {
      headers: { 'If-None-Match': before.tag },
    });
    expect(fresh.status).toBe(200);

    await put(pid, [{ key: 'c', size: 45_000, ago: 0 }]);
    await waitForKeys(pid, ['a', 'c']);
    expect(await cacheOf(pid)).toMatchObject({ bytes: 90_000 });
    expect(await fetchEntry(pid, 'a')).toMatchObject({ status: 200 });
    // What the cache holds is no change of the project.
    const changed = await client.fetch(`/api/projects/${pid}`, {
      method: 'PUT',
      body: JSON.stringify({ name: 'changed' }),
      headers: { 'If-Match': before.tag },
    });
    expect(changed.status).toBe(200);
    expect(((await changed.json()) as Project).cache).toMatchObject({ bytes: 90_000 });
  });

  test('one that was read since it was stored stays longer than a newer one that was not', async () => {
    const pid = await makeProject('just stored');
    await put(pid, [
      { key: 'a', size: 45_000, ago: 2_000 },
      { key: 'b', size: 45_000, ago: 1_000 },
    ]);
    for (let n = 0; n < 3; n++) expect(await fetchEntry(pid, 'a')).toMatchObject({ status: 200 });
    await put(pid, [{ key: 'c', size: 45_000, ago: 0 }]);
    await waitForKeys(pid, ['a', 'c']);
  });

  test('a read is written down once a minute', async () => {
    const pid = await makeProject('reads');
    const usedOf = async () =>
      (await database`select used::text from cache_entries where project = ${pid} and key = 'a'`)[0]
        ?.used;
    const setUsed = (ago: string) =>
      database`update cache_entries set used = now() - ${ago}::interval
        where project = ${pid} and key = 'a'`;
    await put(pid, [
      { key: 'a', ago: HOUR },
      { key: 'b', ago: 0 },
    ]);
    await setUsed('30 seconds');
    const used = await usedOf();
    await fetchEntry(pid, 'a');
    expect(await usedOf()).toBe(used);
    await setUsed('70 seconds');
    const before = await usedOf();
    await fetchEntry(pid, 'a');
    expect(await usedOf()).not.toBe(before);
  });

  test('many go in batches, and no more than must', async () => {
    const pid = await makeProject('many');
    const keys = Array.from({ length: 1_500 }, (_, n) => `k${String(n).padStart(4, '0')}`);
    await put(
      pid,
      keys.map((key, n) => ({ key, size: 100, ago: DAY - n * 1_000 })),
    );
    await waitForKeys(pid, keys.slice(500));
  });

  test('what nobody used for days goes, and its object with the last reference', async () => {
    const [one, other] = [await makeProject('one'), await makeProject('other')];
    await put(other, [{ key: 'kept', ago: DAY }]);
    // Its job alone no longer keeps the video.
    await database`update jobs set finished = now() - interval '3 days' where id = ${video.vsid}`;
    await put(one, [
      { key: 'unused', ago: 31 * DAY },
      { key: 'used', ago: 29 * DAY },
    ]);
    await waitForKeys(one, ['used']);
    const waitForDeletions = () =>
      waitFor(
        async () =>
          (
            await database`select from pending_deletions
              where object = (select result ->> 'object' from jobs where id = ${video.vsid})`
          ).length === 0,
        { what: 'its deletion to be decided', timeoutMs: 60_000 },
      );
    await waitForDeletions();
    expect(await fetchEntry(other, 'kept')).toMatchObject({ status: 200 });
    await database`update cache_entries set used = now() - interval '31 days'`;
    // Other projects' entries, of tests before, refer to it, too.
    await waitFor(async () => (await database`select from cache_entries`).length === 0, {
      what: 'all entries to be removed',
      timeoutMs: 60_000,
    });
    await waitForDeletions();
    expect((await client.fetch(video.at)).status).toBe(404);
  });

  test('a video whose user has room for it alone is kept without the cache, which it says', async () => {
    const { client: user, username } = await addUser(client);
    const own = await openSession(user, sshd);
    const images = await drawFrames({ folder: join(sshd.home, 'alone'), count: 3 });
    const makeOwn = async (cache: object) => {
      const body = { 'content-type': 'video/mp4', images, ...cache };
      const { vsid } = await user.post<{ vsid: string }>(`/api/remotes/${own}/videos`, body);
      return waitForEnd(user, vsid);
    };
    const { id, result } = await makeOwn({});
    const { bytes, stored } = result as { bytes: number; stored: number };
    await user.delete(`/api/jobs/${id}/record`);
    const { id: project } = await user.post<{ id: string }>('/api/projects', { name: 'room' });
    const model = { 'model-type': 't', name: 'm' };
    const { id: mid } = await user.post<{ id: string }>(`/api/projects/${project}/models`, model);
    const { storage } = await user.get<{ storage: { bytes: number } }>('/api/users/-');
    const filling = USER_LIMIT - storage.bytes - stored - Math.floor(bytes / 2);
    const value = 'x'.repeat(filling - '""'.length);
    const filled = await user.fetch(`/api/models/${mid}/parameters/filling`, {
      method: 'PUT',
      body: JSON.stringify({ value }),
    });
    expect(filled.ok).toBe(true);
    const uncached = `${username} would store more than ${USER_LIMIT} bytes.`;
    expect(await makeOwn({ project, key: 'k' })).toMatchObject({
      state: 'succeeded',
      result: { bytes, stored, uncached: expect.stringContaining(uncached) },
    });
    expect(await keysOf(project)).toEqual([]);
  });

  test('a video that no cache can keep is refused', async () => {
    const pid = await makeProject('large');
    const folder = join(sshd.home, 'noise');
    mkdirSync(folder);
    const size = { width: 320, height: 240, channels: 3 } as const;
    const images = Array.from({ length: 3 }, (_, n) => join(folder, `${n}.png`));
    for (const path of images) {
      const raw = randomBytes(size.width * size.height * size.channels);
      writeFileSync(path, await sharp(raw, { raw: size }).png().toBuffer());
    }
    const { at } = await make(images, { quality: 1 });
    const query = new URLSearchParams({ cache: 'project', project: pid, key: 'k' });
    const refused = await client.fetch(`${at}?${query}`);
    const problem = await expectProblem(refused, 507, 'insufficient_storage');
    expect(problem.hint).toContain('LIMIT_CACHE_BYTES');
    expect((await client.fetch(at)).status).toBe(200);
    // Asked for with the video, it is not a reason to have none.
    const kept = await make(images, { quality: 1, project: pid, key: 'k' });
    expect((await client.fetch(kept.at)).status).toBe(200);
    const { result } = await client.get<{ result: { uncached?: string } }>(
      `/api/jobs/${kept.vsid}`,
    );
    expect(result.uncached).toMatch(/^the video has \d+ bytes, more than the whole cache/);
    expect(await keysOf(pid)).toEqual([]);
  });
});
