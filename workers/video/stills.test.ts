import { join } from 'node:path';
import sharp from 'sharp';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { drawFrames, readLocalFrames } from '../../test/harness/files/draw-frames.ts';
import { makeTempDir } from '../../test/harness/files/temp-dir.ts';
import { AMPLE } from '../../test/harness/files/video-limits.ts';
import { giveToDecoder } from '../sandbox/scratch-dir.ts';
import { encodeVideo } from './encode-video.ts';
import { makeStills } from './stills.ts';

const temp = makeTempDir('stills');
beforeAll(() => giveToDecoder(temp.path));
afterAll(() => temp.remove());

test.each([
  { type: 'video/mp4', codec: 'h264' },
  { type: 'video/mp4', codec: 'av1' },
  { type: 'video/webm', codec: 'vp9' },
] as const)('stills made while $codec is encoded are those of the video', async video => {
  const paths = await drawFrames({
    folder: join(temp.path, 'frames'),
    count: 35,
    width: 200,
    height: 100,
  });
  const stillPaths = { poster: join(temp.path, 'a.jpg'), sprite: join(temp.path, 'b.jpg') };
  const made = await encodeVideo({
    frames: readLocalFrames(paths),
    total: paths.length,
    ...video,
    fps: 3,
    outputPath: join(temp.path, 'video'),
    stillPaths,
    limits: AMPLE,
  });
  const later = await makeStills({
    ffmpeg: 'ffmpeg',
    directory: temp.path,
    name: 'video',
    type: video.type,
    size: made,
    frames: 35,
    fps: 3,
    limits: AMPLE,
    signal: new AbortController().signal,
  });
  expect(made.tiles).toMatchObject({ count: 12, columns: 10, width: 160, height: 80, every: 1 });
  expect(later?.tiles).toEqual(made.tiles);
  const read = (path = '') => sharp(path).raw().toBuffer({ resolveWithObject: true });
  for (const still of ['poster', 'sprite'] as const) {
    const [ours, its] = await Promise.all([read(stillPaths[still]), read(later?.[still])]);
    expect(its.info).toEqual(ours.info);
    const sum = ours.data.reduce((all, value, i) => all + Math.abs(value - (its.data[i] ?? 0)), 0);
    expect(sum / ours.data.length).toBeLessThan(3);
    // Not empty.
    expect((await sharp(stillPaths[still]).stats()).entropy).toBeGreaterThan(0.5);
  }
});
