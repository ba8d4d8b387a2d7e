import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { giveToDecoder } from '../../workers/sandbox/scratch-dir.ts';
import { type EncodeVideoOptions, encodeVideo } from '../../workers/video/encode-video.ts';
import { planLabels } from '../../workers/video/frame-labels.ts';
import {
  describeStream,
  digestPictures,
  listKeyFrames,
  psnrOf,
} from '../harness/files/compare-videos.ts';
import { placesOf, readLocalFrames } from '../harness/files/draw-frames.ts';
import { readLabels } from '../harness/files/read-labels.ts';
import { linkFrames, useSegmentedVideos } from '../harness/files/segmented-videos.ts';
import { makeTempDir } from '../harness/files/temp-dir.ts';
import { AMPLE } from '../harness/files/video-limits.ts';
import { waitForEnd } from '../harness/hosts/remote.ts';
import { missingPrograms } from '../harness/skip.ts';
import { describeStack } from '../harness/stacks/forms.ts';

const FPS = 25;

/** Workers have one slot each: only the other one can help. */
describeStack(missingPrograms('sshd', 'ffmpeg'), 'segments of videos', form => {
  const directory = makeTempDir('video-segments');
  afterAll(() => directory.remove());
  const stage = useSegmentedVideos(form);
  const { client } = stage;

  beforeAll(() => giveToDecoder(directory.path));

  const save = async (id: string, name: string) => {
    const path = join(directory.path, name);
    const answer = await client.fetch(`/api/remotes/${stage.sid}/videos/${id}`);
    writeFileSync(path, Buffer.from(await answer.arrayBuffer()));
    return path;
  };
  /** Made of the same frames by one ffmpeg. */
  const encodeAlone = async (paths: string[], options: Partial<EncodeVideoOptions>) => {
    const outputPath = join(directory.path, `alone-${Math.random()}`);
    await encodeVideo({
      type: 'video/mp4',
      fps: FPS,
      limits: AMPLE,
      outputPath,
      frames: readLocalFrames(paths),
      total: paths.length,
      ...options,
    });
    return outputPath;
  };
  test.each([
    { type: 'video/mp4', codec: undefined, name: 'h264.mp4', frames: undefined },
    { type: 'video/webm', codec: undefined, name: 'vp9.webm', frames: 411 },
    { type: 'video/mp4', codec: 'av1', name: 'av1.mp4', frames: 611 },
  ] as const)(
    '$name of two workers is that of one',
    { timeout: 400_000 },
    async ({ type, codec, name, frames }) => {
      const paths = stage.frames.slice(0, frames);
      const id = await stage.start({
        'content-type': type,
        codec,
        images: paths,
        fps: FPS,
        label: 'frame',
      });
      const shares: number[] = [];
      let hasEnded = false;
      // One request after another: answers may overtake each other.
      const watch = async () => {
        for (; !hasEnded; await delay(100)) {
          const job = await stage.jobOf(id).catch(() => undefined);
          if (job) shares.push(job.progress ?? 0);
        }
      };
      const watched = watch();
      await stage.helperOf(id);
      const joined = await stage.segmentsOf(id);
      const job = await waitForEnd(client, id, 240_000);
      hasEnded = true;
      await watched;
      expect(job).toMatchObject({ state: 'succeeded', result: { frames: paths.length } });
      expect(shares).toEqual([...shares].sort((a, b) => a - b));
      const video = await save(id, name);
      const alone = await encodeAlone(paths, {
        type,
        codec,
        labelsFor: size => planLabels('frame', placesOf(paths), size),
      });
      expect(describeStream(video)).toEqual(describeStream(alone));
      const pictures = digestPictures(video);
      expect(pictures.length).toBe(paths.length);
      if (paths.length < 1_000) {
        const labels = await readLabels(video, { length: 3, scale: 2 });
        expect(labels.map(label => label.trim())).toEqual(paths.map((_, n) => String(n)));
      }
      const keys = listKeyFrames(video);
      expect(keys).toEqual(listKeyFrames(alone));
      const pattern = join(directory.path, `${name}-frames`, '%d.jpg');
      linkFrames(paths, pattern);
      const [ours, theirs] = [video, alone].map(file => psnrOf(file, { pattern, fps: FPS }));
      console.info(`${name}: ${ours} dB, of one worker ${theirs} dB`);
      expect(Math.abs((ours ?? 0) - (theirs ?? 0))).toBeLessThan(0.1);
      const seams = joined.map(segment => segment.start).filter(at => at > 0);
      expect(seams.length).toBeGreaterThan(0);
      for (const at of seams.flatMap(seam => [seam - 1, seam, seam + 1]))
        expect(digestPictures(video, ['-ss', String(at / FPS)])[0]).toBe(pictures[at]);
      await stage.expectNothingLeft(id, 3);
    },
  );
});
