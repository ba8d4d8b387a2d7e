import { rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { countFrames } from '../../demo/probe-video.ts';
import { pidOfWorker } from '../../shared/jobs/worker-id.ts';
import { drawFrame } from '../harness/draw-frames.ts';
import { describeStack } from '../harness/forms.ts';
import { openSession, waitForEnd } from '../harness/remote.ts';
import { linkFrames, useSegmentedVideos } from '../harness/segmented-videos.ts';
import { missingPrograms } from '../harness/skip.ts';
import { makeTempDir } from '../harness/temp-dir.ts';
import { addUser } from '../harness/users.ts';
import { waitFor } from '../harness/wait-for.ts';

/** The video, its poster and its sprite. */
const OBJECTS = 3;

describeStack(missingPrograms('sshd', 'ffmpeg'), 'segments of videos and faults', form => {
  const stage = useSegmentedVideos(form);
  const { client } = stage;

  const expectWhole = async (id: string, frames: number) => {
    const job = await waitForEnd(client, id, 120_000);
    expect(job).toMatchObject({ state: 'succeeded', result: { frames } });
    const answer = await client.fetch(`/api/jobs/${id}/result`);
    const directory = makeTempDir('segmented');
    try {
      const file = join(directory.path, 'video');
      writeFileSync(file, Buffer.from(await answer.arrayBuffer()));
      expect(await countFrames(file)).toBe(frames);
    } finally {
      directory.remove();
    }
    await stage.expectNothingLeft(id, OBJECTS);
  };

  for (const killed of ['helps with', 'makes'] as const) {
    test(`the worker that ${killed} a video is killed`, async () => {
      const id = await stage.start({ images: stage.frames });
      const helper = await stage.helperOf(id);
      const { worker } = await stage.jobOf(id);
      process.kill(pidOfWorker((killed === 'makes' ? worker : helper) ?? ''), 'SIGKILL');
      await expectWhole(id, stage.frames.length);
    });
  }

  test('a cancel ends what both workers do', async () => {
    const id = await stage.start({ images: stage.frames });
    await stage.helperOf(id);
    await client.delete(`/api/jobs/${id}`);
    expect((await waitForEnd(client, id, 10_000)).state).toBe('cancelled');
    await stage.expectNothingLeft(id, 0);
  });

  test('a broken frame that the helper finds is told as that of one worker', async () => {
    const images = [...stage.frames];
    const broken = join(dirname(images[0] ?? ''), 'broken.jpg');
    writeFileSync(broken, 'this is no picture');
    images[2_900] = broken;
    const id = await stage.start({ images });
    await stage.helperOf(id);
    expect(await waitForEnd(client, id, 120_000)).toMatchObject({
      state: 'failed',
      error: {
        code: 'bad_frames',
        count: 1,
        frames: [{ index: 2_900, path: broken, reason: expect.stringMatching('not') }],
      },
    });
    await stage.expectNothingLeft(id, 0);
  });

  test('another video takes the slot of a helper at once', async () => {
    const id = await stage.start({ images: stage.frames });
    const helper = await stage.helperOf(id);
    // One user alone is not given the last slot.
    const { client: other } = await addUser(client);
    const sid = await openSession(other, stage.sshd);
    const body = { 'content-type': 'video/mp4', images: stage.frames.slice(0, 50) };
    const { vsid } = await other.post<{ vsid: string }>(`/api/remotes/${sid}/videos`, body);
    const job = await waitForEnd(other, vsid, 30_000);
    expect(job).toMatchObject({ state: 'succeeded', worker: helper });
    expect((await stage.jobOf(id)).state).toBe('running');
    await expectWhole(id, stage.frames.length);
  });

  test('frames of a pattern, of several kinds, of which some are left out', async () => {
    const pattern = join(stage.sshd.home, 'pattern', '%d.jpg');
    linkFrames(stage.frames.slice(0, 1_500), pattern);
    for (const n of [700, 1_400]) {
      rmSync(pattern.replace('%d', String(n)));
      writeFileSync(pattern.replace('%d', String(n)), 'this is no picture');
    }
    for (const n of [600, 1_300]) {
      rmSync(pattern.replace('%d', String(n)));
      const png = await drawFrame({ width: 640, height: 360, kind: 'png' });
      writeFileSync(pattern.replace('%d', String(n)), png);
    }
    const id = await stage.start({ pattern, 'on-bad-frame': 'skip', label: 'name' });
    await stage.helperOf(id);
    await expectWhole(id, 1_498);
    expect((await stage.jobOf(id)).result).toMatchObject({
      skipped: [{ index: 700 }, { index: 1_400 }],
      skippedCount: 2,
    });
  });

  test('a video that is made soon is made by one worker', async () => {
    const id = await stage.start({ images: stage.frames.slice(0, 100) });
    const seen: unknown[] = [];
    await waitFor(
      async () => {
        seen.push(...(await stage.segmentsOf(id)));
        return (await stage.jobOf(id)).state === 'succeeded';
      },
      { what: 'the video', intervalMs: 50 },
    );
    expect(seen).toEqual([]);
  });
});
