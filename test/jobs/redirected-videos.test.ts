import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { probeVideo } from '../../demo/probe-video.ts';
import {
  expectAccessible,
  logInToConsole,
  openConsole,
  useChromium,
} from '../harness/browser/console-page.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { drawFrames } from '../harness/files/draw-frames.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { openSession, waitForEnd } from '../harness/hosts/remote.ts';
import { missingMinio, startMinio } from '../harness/servers/minio.ts';
import { describeUnless, missingPrograms } from '../harness/skip.ts';
import { startStack } from '../harness/stacks/stack.ts';
import { useRemoteStack, useStarted } from '../harness/stacks/use-stack.ts';

const missing = missingPrograms('sshd', 'ffmpeg', 'chromium') ?? missingMinio();

describeUnless(missing, 'videos that the object store sends', () => {
  const temp = makeTempDir('redirected');
  afterAll(() => temp.remove());
  const browser = useChromium();
  const minio = useStarted(startMinio);
  const { client, sshd, stack } = useRemoteStack({
    start: () =>
      startStack({
        env: {
          S3_ENDPOINT: minio.endpoint,
          S3_ACCESS_KEY: minio.accessKey,
          S3_SECRET_KEY: minio.secretKey,
          VIDEO_DELIVERY: 'redirect',
        },
      }),
  });
  let at: string;
  let vsid: string;

  beforeAll(async () => {
    const sid = await openSession(client, sshd);
    const images = await drawFrames({ folder: join(sshd.home, 'frames'), count: 10 });
    const body = { 'content-type': 'video/mp4', images };
    ({ vsid } = await client.post<{ vsid: string }>(`/api/remotes/${sid}/videos`, body));
    expect(await waitForEnd(client, vsid)).toMatchObject({ state: 'succeeded' });
    at = `/api/remotes/${sid}/videos/${vsid}`;
  });

  const ask = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
    client.fetch(path, { method, headers, redirect: 'manual' });
  /** The address that GET leads to. */
  const addressOf = async (path: string, headers: Record<string, string> = {}) => {
    const answer = await ask(path, headers);
    expect([path, answer.status, answer.headers.get('Cache-Control')]).toEqual([
      path,
      302,
      'no-store',
    ]);
    return answer.headers.get('Location') ?? '';
  };

  test('GET leads to an address that is good for an hour, without a credential of ours', async () => {
    const address = await addressOf(at);
    expect(new URL(address).origin).toBe(minio.endpoint);
    expect(new URL(address).searchParams.get('X-Amz-Expires')).toBe('3600');
    const answer = await fetch(address);
    expect([answer.status, answer.headers.get('Content-Type')]).toEqual([200, 'video/mp4']);
    expect(answer.headers.get('Content-Disposition')).toBe('inline');
    const path = join(temp.path, 'video.mp4');
    writeFileSync(path, Buffer.from(await answer.arrayBuffer()));
    expect(await probeVideo(path)).toMatchObject({ frames: 10 });
    // The signature is for this object and this type alone.
    for (const [part, other] of [
      ['video%2Fmp4', 'text%2Fhtml'],
      [vsid, vsid.replace(/.$/, last => (last === '0' ? '1' : '0'))],
    ] as const) {
      expect(address).toContain(part);
      expect((await fetch(address.replace(part, other))).status).toBe(403);
    }
  });

  test('ranges are followed there, and a download that was cut goes on', async () => {
    const whole = Buffer.from(await (await client.fetch(at)).arrayBuffer());
    const part = await client.fetch(at, { headers: { Range: 'bytes=100-199' } });
    expect([part.status, part.headers.get('Content-Range')]).toEqual([
      206,
      `bytes 100-199/${whole.length}`,
    ]);
    expect(Buffer.from(await part.arrayBuffer()).equals(whole.subarray(100, 200))).toBe(true);
    const headers = { Range: 'bytes=200-', 'If-Range': part.headers.get('ETag') ?? '' };
    const rest = await client.fetch(at, { headers });
    expect(rest.status).toBe(206);
    expect(Buffer.from(await rest.arrayBuffer()).equals(whole.subarray(200))).toBe(true);
    // Of another object there is no rest.
    const other = await ask(at, { Range: 'bytes=200-', 'If-Range': '"another"' });
    expect(other.status).toBe(200);
    expect(Buffer.from(await other.arrayBuffer()).equals(whole)).toBe(true);
    const beyond = await ask(at, { Range: `bytes=${whole.length}-` });
    await expectProblem(beyond, 416, 'range_not_satisfiable');
  });

  test('the tag of what was followed is one to insist on, for reading and for removing', async () => {
    const { id: pid } = await client.post<{ id: string }>('/api/projects', { name: 'p' });
    const query = new URLSearchParams({ cache: 'project', project: pid, key: 'k' });
    await addressOf(`${at}?${query}`);
    const entry = `/api/projects/${pid}/cache/k`;
    const followed = await fetch(await addressOf(entry));
    const tag = followed.headers.get('ETag') ?? '';
    expect(tag).toMatch(/^".+"$/);
    const bytes = (await followed.arrayBuffer()).byteLength;
    const read = await ask(entry, { 'If-Match': tag });
    expect([read.status, (await read.arrayBuffer()).byteLength]).toEqual([200, bytes]);
    for (const method of ['GET', 'DELETE'])
      await expectProblem(
        await ask(entry, { 'If-Match': '"another"' }, method),
        412,
        'precondition_failed',
      );
    expect((await ask(entry, { 'If-Match': tag }, 'DELETE')).status).toBe(204);
  });

  test('HEAD and conditions are answered here', async () => {
    const head = await ask(at, {}, 'HEAD');
    expect([head.status, head.headers.get('Content-Type')]).toEqual([200, 'video/mp4']);
    expect(Number(head.headers.get('Content-Length'))).toBeGreaterThan(200);
    const tag = head.headers.get('ETag') ?? '';
    expect((await ask(at, { 'If-None-Match': tag })).status).toBe(304);
    const matched = await ask(at, { 'If-Match': tag });
    expect([matched.status, (await matched.arrayBuffer()).byteLength]).toEqual([
      200,
      Number(head.headers.get('Content-Length')),
    ]);
    await expectProblem(await ask(at, { 'If-Match': '"x"' }), 412, 'precondition_failed');
    const date = head.headers.get('Last-Modified') ?? '';
    expect((await ask(at, { 'If-Modified-Since': date })).status).toBe(304);
    // A later date is that of another video; the store would answer 304.
    const later = new Date(Date.now() + 60_000).toUTCString();
    expect((await ask(at, { 'If-Modified-Since': later })).status).toBe(200);
    expect((await ask(`${at}/poster`)).status).toBe(200);
  });

  test('a video is cached before its address is told, and what is cached has one too', async () => {
    const { id } = await client.post<{ id: string }>('/api/projects', { name: 'cached' });
    const entry = `/api/projects/${id}/cache/k`;
    const query = new URLSearchParams({ cache: 'project', project: id, key: 'k' });
    expect((await ask(`${at}?${query}`, {}, 'HEAD')).status).toBe(200);
    await expectProblem(await ask(entry), 404, 'not_found');
    await addressOf(`${at}?${query}`);
    expect((await ask(entry, {}, 'HEAD')).status).toBe(200);
    const cached = await fetch(await addressOf(entry), { headers: { Range: 'bytes=0-9' } });
    expect(cached.status).toBe(206);
    expect(await addressOf(`/api/jobs/${vsid}/result`)).toContain(vsid);
  });

  test('a video is saved under a name that the store tells', async () => {
    const query = new URLSearchParams({ download: 'Läufe/7.mp4' });
    for (const path of [at, `/api/jobs/${vsid}/result`]) {
      const address = await addressOf(`${path}?${query}`);
      const told = `attachment; filename="L_ufe_7.mp4"; filename*=UTF-8''L%C3%A4ufe_7.mp4`;
      expect((await fetch(address)).headers.get('Content-Disposition')).toBe(told);
      // The signature is for this name alone.
      expect((await fetch(address.replace('_7.mp4', '_8.exe'))).status).toBe(403);
      const head = await ask(`${path}?${query}`, {}, 'HEAD');
      expect(head.headers.get('Content-Disposition')).toBe(told);
    }
    const long = await ask(`${at}?download=${'n'.repeat(256)}`);
    await expectProblem(long, 400, 'invalid_input');
  });

  test('the console saves it, from its job and from a project', async () => {
    const { id } = await client.post<{ id: string }>('/api/projects', { name: 'saved' });
    const query = new URLSearchParams({ cache: 'project', project: id, key: 'runs/7' });
    await ask(`${at}?${query}`);
    const { page } = await openConsole(browser, stack.url, { path: `jobs/${vsid}` });
    await logInToConsole(page, stack);
    const save = async (link: string) => {
      const downloading = page.waitForEvent('download');
      await page.getByRole('link', { name: link }).click();
      const download = await downloading;
      expect(new URL(download.url()).origin).toBe(minio.endpoint);
      expect(await probeVideo(await download.path())).toMatchObject({ frames: 10 });
      return download.suggestedFilename();
    };
    expect(await save('Download the video')).toBe(`${vsid}.mp4`);
    await page.goto(`${stack.url}/console/projects/${id}/videos`);
    expect(await save('Download runs/7')).toBe('7.mp4');
    // It is looked through frame by frame, as on the page of its job.
    await page.getByRole('button', { name: 'Play runs/7' }).click();
    const player = page.getByRole('region', { name: 'Video' });
    const frame = player.getByRole('slider', { name: 'Frame' });
    const next = player.getByRole('button', { name: 'The next frame' });
    await expect.poll(() => next.isEnabled()).toBe(true);
    await player.locator('video').first().press('Home');
    await expect.poll(() => frame.inputValue()).toBe('1');
    for (const key of ['.', '.', '.', ',']) await page.keyboard.press(key);
    await expect.poll(() => frame.inputValue()).toBe('3');
    await frame.hover();
    await player.locator('video.scrub-picture').waitFor();
    await expectAccessible(page);
  });

  test('it plays in a page of ours, whose policy lets in media of that store alone', async () => {
    const { url } = await client.post<{ url: string }>('/api/links', { path: at });
    const page = await browser.newPage();
    const answer = await page.goto(`${stack.url}/console/`);
    const policy = answer?.headers()['content-security-policy'] ?? '';
    expect(policy).toContain(`media-src 'self' ${minio.endpoint};`);
    expect(policy.split(minio.endpoint)).toHaveLength(2);
    const duration = await page.evaluate(
      `new Promise((resolve, reject) => {
        const video = document.createElement('video');
        video.onloadeddata = () => resolve(video.duration);
        video.onerror = () => reject(new Error(video.error.message));
        video.src = ${JSON.stringify(url)};
      })`,
    );
    expect(duration).toBeCloseTo(10 / 25, 2);
  });
});
