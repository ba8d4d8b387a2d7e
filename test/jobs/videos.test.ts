import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { probeVideo } from '../../demo/probe-video.ts';
import { findDescendants, readEnvironment } from '../../servers/processes.ts';
import { listSecrets } from '../../shared/secrets/redact.ts';
import { expectProblem } from '../harness/clients/problem.ts';
import { drawFrames } from '../harness/files/draw-frames.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import {
  holderOf,
  type Job,
  launchAsync,
  openSession,
  waitForEnd,
} from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeForms } from '../harness/stacks/forms.ts';
import { useRemoteStack } from '../harness/stacks/use-stack.ts';
import { waitFor } from '../harness/wait-for.ts';

interface Status {
  ok: boolean;
  ready: boolean;
  phase: string;
  message: string;
  progress?: number;
  returncode?: number;
  stderr?: string;
}
const UNKNOWN = '00000000000000000000000000';

describeForms(missingPrograms('sshd', 'ffmpeg'), 'videos', form => {
  const directory = makeTempDir('videos');
  afterAll(() => directory.remove());
  const { client, sshd } = useRemoteStack(form, { workers: 2 });
  let sid: string;
  let images: string[];

  beforeAll(async () => {
    sid = await openSession(client, sshd);
    images = await drawFrames({ folder: join(sshd.home, 'frames'), count: 10 });
  });

  const post = (body: unknown, session = sid) =>
    client.fetch(`/api/remotes/${session}/videos`, { method: 'POST', body: JSON.stringify(body) });
  const start = async (options: object, session = sid) => {
    const response = await post({ 'content-type': 'video/mp4', images, ...options }, session);
    const body = (await response.json()) as { sid: string; vsid: string; job: string };
    expect([response.status, body]).toEqual([
      202,
      { sid: body.sid, vsid: body.sid, job: body.sid },
    ]);
    const at = `/api/remotes/${session}/videos/${body.vsid}`;
    expect(response.headers.get('Location')).toBe(`${at}/status`);
    return { vsid: body.vsid, at };
  };
  /** Polls the status until it is told that there is a video, or that there will be none; all that was told. */
  const follow = async (at: string): Promise<Status[]> => {
    const seen: Status[] = [];
    await waitFor(
      async () => {
        const status = await client.get<Status>(`${at}/status`);
        seen.push(status);
        return status.ready || !status.ok;
      },
      { what: 'the video', timeoutMs: 60_000, intervalMs: 50 },
    );
    return seen;
  };
  const save = async (at: string, type: string) => {
    const response = await client.fetch(at);
    expect([response.status, response.headers.get('Content-Type')]).toEqual([200, type]);
    const path = join(directory.path, `video.${type.slice(6)}`);
    writeFileSync(path, Buffer.from(await response.arrayBuffer()));
    return path;
  };
  /** What the programs that make a video could read in their environment. */
  const secretsOfChildren = (pid: number) => {
    const children = findDescendants([pid]);
    expect(children.map(({ command }) => command)).toContainEqual(expect.stringMatching('ffmpeg'));
    const secrets = children.flatMap(child => listSecrets(readEnvironment(child.pid)));
    return secrets.filter(secret => secret !== '');
  };
  const resultOf = async (vsid: string) => (await client.get<Job>(`/api/jobs/${vsid}`)).result;

  for (const type of ['video/mp4', 'video/webm'] as const) {
    for (const encode of ['host', 'worker'] as const) {
      test(`${type}, encoded by the ${encode}`, async () => {
        const { at, vsid } = await start({ 'content-type': type, encode, fps: 10 });
        const seen = await follow(at);
        const working = seen.slice(0, -1);
        for (const status of working) {
          expect(status).toEqual({
            ok: true,
            ready: false,
            phase: expect.stringMatching(/^(queued|checking|encoding|storing)$/),
            message: expect.stringMatching(new RegExp(`^${status.phase}`)),
            progress: expect.any(Number),
          });
        }
        expect(working.length).toBeGreaterThan(0);
        const shares = seen.map(({ progress }) => progress ?? -1);
        expect(shares).toEqual([...shares].sort((a, b) => a - b));
        expect(seen.at(-1)).toEqual({
          ok: true,
          ready: true,
          phase: 'ready',
          message: 'ready',
          progress: 1,
        });
        expect(await probeVideo(await save(at, type))).toEqual({
          frames: 10,
          width: 64,
          height: 48,
        });
        expect(await resultOf(vsid)).toMatchObject({ frames: 10, encoded: encode, type });
      });
    }
  }

  test('frames of several kinds are decoded, and an odd size is made even', async () => {
    const folder = join(sshd.home, 'mixed');
    const frames = await Promise.all(
      (['png', 'jpeg', 'webp', 'tiff'] as const).map(async kind => {
        const [path = ''] = await drawFrames({
          folder: join(folder, kind),
          count: 1,
          kind,
          width: 33,
          height: 25,
        });
        return path;
      }),
    );
    const { at } = await start({ images: frames });
    expect((await follow(at)).at(-1)).toMatchObject({ ok: true, ready: true });
    expect(await probeVideo(await save(at, 'video/mp4'))).toEqual({
      frames: 4,
      width: 34,
      height: 26,
    });
  });

  test('content-type and images are asked for by name', async () => {
    const missing: [object, string, string][] = [
      [{ images }, 'missing_content_type', 'Missing content-type.'],
      [{ 'content-type': 'video/mp4' }, 'missing_images', 'Missing images.'],
      [{ 'content-type': 'video/mp4', images: [] }, 'missing_images', 'Missing images.'],
      [
        { 'content-type': 'video/avi', images },
        'unsupported_video_type',
        'Unsupported content-type.',
      ],
      [{ 'content-type': 7, images }, 'unsupported_video_type', 'Unsupported content-type.'],
    ];
    for (const [body, code, title] of missing) {
      const problem = await expectProblem(await post(body), 400, code);
      expect(problem.title).toBe(title);
      expect(problem.detail.startsWith(title.replace(/\.$/, ''))).toBe(true);
    }
  });

  test('without an agent there are no videos: 400 everywhere', async () => {
    const plain = await openSession(client, sshd, { agent: false });
    const at = `/api/remotes/${plain}/videos`;
    for (const response of [
      await post({ 'content-type': 'video/mp4', images }, plain),
      await client.fetch(`${at}/${UNKNOWN}/status`),
      await client.fetch(`${at}/${UNKNOWN}`),
    ]) {
      const problem = await expectProblem(response, 400, 'agent_required');
      expect(problem).toMatchObject({ title: 'Agent required.', hint: expect.any(String) });
      expect(response.headers.get('X-Service-Message')).toMatch(/^Agent required/);
    }
  });

  for (const encode of ['host', 'worker'] as const) {
    test(`a frame that is not there is named, where the ${encode} encodes`, async () => {
      const gone = join(sshd.home, 'frames', 'nowhere.png');
      const { at, vsid } = await start({
        images: [...images.slice(0, 3), gone, ...images],
        encode,
      });
      const status = (await follow(at)).at(-1);
      expect(status).toMatchObject({ ok: false, ready: false });
      expect(status?.message).toContain(gone);
      const problem = await expectProblem(await client.fetch(at), 409, 'conflict');
      expect(problem.detail).toContain(gone);
      expect((await client.get<Job>(`/api/jobs/${vsid}`)).error?.code).toBe('bad_frames');
    });
  }

  test('a frame of another size is named with both sizes', async () => {
    const [other = ''] = await drawFrames({
      folder: join(sshd.home, 'other'),
      count: 1,
      width: 80,
    });
    const { at } = await start({ images: [...images, other] });
    const status = (await follow(at)).at(-1);
    expect(status?.ok).toBe(false);
    expect(status?.message).toContain(other);
    expect(status?.message).toMatch(/80×48.*64×48/);
  });

  test('what is not ready, not there or cancelled says so', async () => {
    // Fills the slots of both workers, so that the last one has to wait.
    const many = Array.from({ length: 60 }, () => images).flat();
    const started = [];
    for (let i = 0; i < 6; i++) started.push(await start({ images: many, encode: 'worker' }));
    const last = started.at(-1) ?? { at: '', vsid: '' };
    const early = await client.fetch(last.at);
    expect(early.headers.get('Retry-After')).toBe('1');
    await expectProblem(early, 409, 'video_not_ready');
    // Where the machine is quick, the first may have ended.
    for (const { vsid } of [last, ...started.slice(0, -1)])
      expect([202, 409]).toContain(
        (await client.fetch(`/api/jobs/${vsid}`, { method: 'DELETE' })).status,
      );
    await waitForEnd(client, last.vsid);
    expect(await client.get(`${last.at}/status`)).toEqual({
      ok: false,
      ready: false,
      phase: 'failed',
      message: 'failed: Cancelled.',
    });
    await expectProblem(await client.fetch(last.at), 409, 'conflict');

    const command = await launchAsync(client, sid, 'true');
    for (const vsid of [UNKNOWN, 'nonsense', command.id]) {
      for (const path of ['', '/status'])
        await expectProblem(
          await client.fetch(`/api/remotes/${sid}/videos/${vsid}${path}`),
          404,
          'not_found',
        );
    }
    const other = await openSession(client, sshd);
    const elsewhere = `/api/remotes/${other}/videos/${last.vsid}/status`;
    await expectProblem(await client.fetch(elsewhere), 404, 'not_found');
  });

  for (const encode of ['host', 'worker'] as const) {
    test(`killed in the middle, the video is made all the same by the ${encode}`, async () => {
      const many = Array.from({ length: 40 }, () => images).flat();
      const large = { images: many, encode, width: 640 };
      const { at, vsid } = await start(large);
      await waitFor(
        async () => {
          const { progress = 0, ready } = await client.get<Status>(`${at}/status`);
          expect(ready).toBe(false);
          return progress > 0;
        },
        { what: 'some progress', timeoutMs: 30_000 },
      );
      const holder = await holderOf(client, vsid);
      if (encode === 'worker') expect(secretsOfChildren(holder)).toEqual([]);
      process.kill(holder, 'SIGKILL');
      expect((await follow(at)).at(-1)).toMatchObject({ ok: true, ready: true });
      expect(await probeVideo(await save(at, 'video/mp4'))).toMatchObject({
        frames: many.length,
        width: 640,
      });
    });
  }

  test('deleting the session cancels its videos, and all of them are 404', async () => {
    const session = await openSession(client, sshd);
    const done = await start({}, session);
    await follow(done.at);
    const many = Array.from({ length: 60 }, () => images).flat();
    const working = await start({ images: many, encode: 'worker' }, session);
    await client.delete(`/api/remotes/${session}`);
    for (const { at } of [done, working]) {
      await expectProblem(await client.fetch(at), 404, 'session_not_found');
      await expectProblem(await client.fetch(`${at}/status`), 404, 'session_not_found');
    }
    expect((await waitForEnd(client, working.vsid, 10_000)).state).toBe('cancelled');
    const kept = await client.fetch(`/api/jobs/${done.vsid}/result`);
    expect(kept.status).toBe(200);
  });
});
