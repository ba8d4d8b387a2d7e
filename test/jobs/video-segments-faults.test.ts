import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { pidOfWorker } from '../../shared/jobs/worker-id.ts';
import { addUser } from '../harness/clients/users.ts';
import { drawFilm, useSegmentedVideos } from '../harness/files/segmented-videos.ts';
import { startCodeHost } from '../harness/hosts/pam-sshd.ts';
import { addHost, openSession, waitForEnd } from '../harness/hosts/remote.ts';
import { missingPrograms, missingRoot } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';
import { waitFor } from '../harness/wait-for.ts';

describeStack(missingPrograms('sshd', 'ffmpeg'), 'segments of videos and faults', form => {
  const stage = useSegmentedVideos(form);
  const { client } = stage;

  for (const killed of ['helps with', 'makes'] as const) {
    test(`the worker that ${killed} a video is killed`, async () => {
      const id = await stage.start({ images: stage.frames });
      const helper = await stage.helperOf(id);
      const { worker } = await stage.jobOf(id);
      process.kill(pidOfWorker((killed === 'makes' ? worker : helper) ?? ''), 'SIGKILL');
      await stage.expectWhole(id, stage.frames.length);
    });
  }

  test('a helper that stands still is not waited for', async () => {
    const id = await stage.start({ images: stage.frames });
    const helper = await stage.helperOf(id);
    const stopped = stage.encoders(pidOfWorker(helper));
    expect(stopped.length).toBeGreaterThan(0);
    for (const { pid } of stopped) process.kill(pid, 'SIGSTOP');
    await stage.expectWhole(id, stage.frames.length);
  });

  test('a worker that stood still takes nothing from the attempt after its own', async () => {
    const id = await stage.start({ images: stage.frames });
    await stage.helperOf(id);
    const { worker } = await stage.jobOf(id);
    const pid = pidOfWorker(worker ?? '');
    process.kill(pid, 'SIGSTOP');
    try {
      await waitFor(
        async () => {
          const job = await stage.jobOf(id);
          const own = (await stage.segmentsOf(id)).filter(segment => segment.worker === job.worker);
          return job.worker !== worker && own.some(({ start }) => start === 0);
        },
        { what: 'the next attempt to share the video', timeoutMs: 60_000, intervalMs: 50 },
      );
    } finally {
      process.kill(pid, 'SIGCONT');
    }
    await stage.expectWhole(id, stage.frames.length);
  });

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
    images[1_450] = broken;
    const id = await stage.start({ images });
    await stage.helperOf(id);
    expect(await waitForEnd(client, id, 120_000)).toMatchObject({
      state: 'failed',
      error: {
        code: 'bad_frames',
        count: 1,
        frames: [{ index: 1_450, path: broken, reason: expect.stringMatching('not') }],
      },
    });
    await stage.expectNothingLeft(id, 0);
  });

  test('another video takes the slot of a helper at once', async () => {
    // It still runs when the other one is made.
    const images = [...stage.frames, ...stage.frames];
    const id = await stage.start({ images });
    const helper = await stage.helperOf(id);
    // One user alone is not given the last slot.
    const { client: other } = await addUser(client);
    const sid = await openSession(other, stage.sshd);
    const body = { 'content-type': 'video/mp4', images: stage.frames.slice(0, 50) };
    const { vsid } = await other.post<{ vsid: string }>(`/api/remotes/${sid}/videos`, body);
    const job = await waitForEnd(other, vsid, 30_000);
    expect(job).toMatchObject({ state: 'succeeded', worker: helper });
    expect((await stage.jobOf(id)).state).toBe('running');
    await stage.expectWhole(id, images.length);
  });

  test('a video that is made soon is made by one worker', async () => {
    const id = await stage.start({ images: stage.frames.slice(0, 20) });
    const seen: unknown[] = [];
    await waitFor(
      async () => {
        seen.push(...(await stage.segmentsOf(id)));
        return (await stage.jobOf(id)).state === 'succeeded';
      },
      { what: 'the video', intervalMs: 50, timeoutMs: 20_000 },
    );
    expect(seen).toEqual([]);
  });
});

const skip = missingRoot() ?? missingPrograms('sshd', 'ffmpeg', 'google-authenticator');

/** Only the worker that its user has answered is connected. */
describeStack(skip, 'segments of videos and one-time codes', form => {
  const stage = useSegmentedVideos(form);
  const { client } = stage;

  test('a helper that cannot log in leaves its segment to the worker that can', async () => {
    const host = await startCodeHost();
    try {
      const hostname = await addHost(client, host.sshd, { name: 'codes' });
      const images = drawFilm(join(host.account.home, 'film'));
      const { username } = host.account;
      const { sid, challenge } = await client.post<{ sid: string; challenge: string }>(
        '/api/remotes',
        { hostname, username },
      );
      await client.post(`/api/remotes/${sid}/answers`, { challenge, answers: [host.nextCode()] });
      const body = { 'content-type': 'video/mp4', encode: 'worker', images };
      const { vsid } = await client.post<{ vsid: string }>(`/api/remotes/${sid}/videos`, body);
      await waitFor(async () => (await stage.segmentsOf(vsid)).length > 1, {
        what: 'a segment',
        intervalMs: 50,
      });
      await stage.expectWhole(vsid, images.length);
      expect(await client.get(`/api/remotes/${sid}`)).toMatchObject({ state: 'open' });
    } finally {
      await host.stop();
    }
  });
});
