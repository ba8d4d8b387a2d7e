import { execFileSync, spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { countFrames, probeVideo } from '../../demo/probe-video.ts';
import { findBundledFfmpeg } from '../../shared/process/bundled-ffmpeg.ts';
import { describeStream, listKeyFrames } from '../../test/harness/files/compare-videos.ts';
import {
  drawFrame,
  drawFrames,
  placesOf,
  readLocalFrames,
} from '../../test/harness/files/draw-frames.ts';
import { makeTempDir } from '../../test/harness/files/temp-dir.ts';
import { AMPLE } from '../../test/harness/files/video-limits.ts';
import { giveToDecoder } from '../sandbox/scratch-dir.ts';
import { type EncodeVideoOptions, encodeVideo } from './encode-video.ts';
import { FRAME_STREAM_COMMAND, frameStreamScript } from './frame-stream.ts';
import { readFrames } from './read-frames.ts';

const temp = makeTempDir('encode-worker');
beforeAll(() => giveToDecoder(temp.path));
afterAll(() => temp.remove());
const at = (name: string) => join(temp.path, name);

let video = 0;
async function encode(paths: string[], options: Partial<EncodeVideoOptions> = {}) {
  const outputPath = at(`video-${video++}`);
  const made = await encodeVideo({
    frames: readLocalFrames(paths),
    total: paths.length,
    type: 'video/mp4',
    outputPath,
    limits: AMPLE,
    ...options,
  });
  return { ...made, outputPath };
}

/** The names of the boxes of an MP4 file, in order (ISO/IEC 14496-12). */
function listBoxes(path: string): string[] {
  const bytes = readFileSync(path);
  const names: string[] = [];
  for (let offset = 0; offset < bytes.length; offset += bytes.readUInt32BE(offset)) {
    names.push(bytes.toString('latin1', offset + 4, offset + 8));
  }
  return names;
}

describe('encodeVideo', () => {
  it('makes AV1 of small frames, and of key frames alone', async () => {
    const paths = await drawFrames({ folder: at('small'), count: 3, width: 15, height: 9 });
    const made = await encode(paths, { codec: 'av1', fps: 1.5 });
    expect(made).toMatchObject({ width: 16, height: 10 });
    expect(listKeyFrames(made.outputPath)).toEqual([0, 1, 2]);
  });

  it.each([
    { type: 'video/mp4', kind: 'png' },
    { type: 'video/mp4', kind: 'jpeg' },
    { type: 'video/webm', kind: 'png' },
    { type: 'video/webm', kind: 'jpeg' },
    { type: 'video/mp4', kind: 'tiff' },
    { type: 'video/webm', kind: 'webp' },
  ] as const)('makes $type of $kind frames, padded to even sides', async ({ type, kind }) => {
    const paths = await drawFrames({ folder: at(kind), count: 7, width: 63, height: 41, kind });
    const made = await encode(paths, { type, fps: 29.97 });
    expect(made).toMatchObject({ frames: 7, width: 64, height: 42 });
    expect(await probeVideo(made.outputPath)).toEqual({ frames: 7, width: 64, height: 42 });
    const bytes = readFileSync(made.outputPath);
    expect(made.bytes).toBe(bytes.length);
    const signature =
      type === 'video/mp4' ? bytes.toString('latin1', 4, 8) : bytes.toString('hex', 0, 4);
    expect(signature).toBe(type === 'video/mp4' ? 'ftyp' : '1a45dfa3');
  });

  it.each([
    { width: 300, height: 200, count: 10, sprite: [160, 107] },
    { width: 300, height: 200, count: 60, sprite: [480, 107] },
    { width: 200, height: 300, count: 10, sprite: [107, 160] },
    { width: 200, height: 300, count: 60, sprite: [321, 160] },
    { width: 1_547, height: 784, count: 30, sprite: [320, 81] },
  ])(
    'makes a sprite of odd sides: $count frames of $width×$height',
    async ({ sprite, ...film }) => {
      const folder = at(`sprite-${film.width}-${film.count}`);
      const paths = await drawFrames({ folder, ...film });
      for (const type of ['video/mp4', 'video/webm'] as const) {
        const stillPaths = { poster: at('poster.jpg'), sprite: at('sprite.jpg') };
        const { tiles } = await encode(paths, { type, stillPaths });
        const { width, height } = await sharp(stillPaths.sprite).metadata();
        expect([width, height]).toEqual(sprite);
        expect([(tiles?.width ?? 0) * (tiles?.columns ?? 0), tiles?.height]).toEqual(sprite);
      }
    },
  );

  it('makes one picture for each frame at every rate', async () => {
    const paths = await drawFrames({ folder: at('rates'), count: 12 });
    for (const type of ['video/mp4', 'video/webm'] as const) {
      for (const fps of [1, 7.3, 59.94, 120]) {
        expect(await countFrames((await encode(paths, { type, fps })).outputPath), `${fps}`).toBe(
          12,
        );
      }
    }
  });

  it.each([
    { type: 'video/mp4' },
    { type: 'video/webm' },
    { type: 'video/mp4', codec: 'av1' },
  ] as const)('shows each frame in its time at every rate: $type $codec', async options => {
    const paths = await drawFrames({ folder: at('times'), count: 12, width: 64, height: 64 });
    for (const fps of [1 / 3, 1 / 7, 24_000 / 1001, 119.8801199]) {
      const { outputPath } = await encode(paths, { ...options, fps });
      const { times } = describeStream(outputPath);
      for (const [n, time] of times.entries()) {
        const wanted = (n * 1_000) / fps;
        expect(Math.abs(time - wanted), `frame ${n} at ${fps}`).toBeLessThan(1.5);
      }
    }
  });

  it('puts the index before the pictures', async () => {
    const { outputPath } = await encode(await drawFrames({ folder: at('index'), count: 3 }));
    const boxes = listBoxes(outputPath);
    expect(boxes.indexOf('moov')).toBeGreaterThan(0);
    expect(boxes.indexOf('mdat')).toBeGreaterThan(boxes.indexOf('moov'));
  });

  it('scales to a width, and makes larger files for higher quality', async () => {
    const paths = await drawFrames({ folder: at('scaled'), count: 3, width: 200, height: 75 });
    expect(await encode(paths, { width: 100 })).toMatchObject({ width: 100, height: 38 });
    for (const type of ['video/mp4', 'video/webm'] as const) {
      const sizes = [];
      for (const quality of [0, 0.65, 1])
        sizes.push((await encode(paths, { type, quality })).bytes);
      expect(sizes).toEqual([...sizes].sort((a, b) => a - b));
      expect(new Set(sizes).size).toBe(3);
    }
    const narrow = await drawFrames({ folder: at('narrow'), count: 1, width: 2, height: 100 });
    await expect(encode(narrow, { width: 7680 })).rejects.toMatchObject({
      code: 'video_failed',
      message: expect.stringContaining('width'),
    });
  });

  it('keeps colours and the last column, whatever the frames are', async () => {
    for (const kind of ['png', 'jpeg', 'tiff'] as const) {
      const [path = ''] = await drawFrames({ folder: at(`colours-${kind}`), count: 1 });
      const red = {
        create: { width: 63, height: 41, channels: 3, background: '#c81e1e' },
      } as const;
      writeFileSync(path, await sharp(red).toFormat(kind).toBuffer());
      const { outputPath } = await encode([path], { quality: 1 });
      const pixel = await readPixel(outputPath, { x: 62, y: 40 });
      for (const [i, value] of [0xc8, 0x1e, 0x1e].entries()) {
        expect(Math.abs((pixel[i] ?? 0) - value), `${kind} ${pixel}`).toBeLessThan(12);
      }
    }
  });

  it('decodes frames of another kind than the first', async () => {
    const paths = await drawFrames({ folder: at('mixed'), count: 6 });
    const kinds = ['png', 'jpeg', 'tiff', 'webp', 'gif', 'png'] as const;
    for (const [i, path] of paths.entries()) {
      writeFileSync(path, await drawFrame({ width: 64, height: 48, kind: kinds[i] ?? 'png' }));
    }
    for (const order of [paths, [...paths].reverse(), [...paths.slice(1)], paths.slice(2)]) {
      expect(await countFrames((await encode(order)).outputPath)).toBe(order.length);
    }
  });

  it('works with the bundled ffmpeg', async () => {
    const ffmpeg = await findBundledFfmpeg();
    expect(ffmpeg).toBeDefined();
    const paths = await drawFrames({ folder: at('bundled'), count: 5, width: 33 });
    for (const type of ['video/mp4', 'video/webm'] as const) {
      const { outputPath } = await encode(paths, { type, ffmpeg });
      expect(await probeVideo(outputPath)).toEqual({ frames: 5, width: 34, height: 48 });
    }
  });

  it('encodes frames from a stream', async () => {
    const images = await drawFrames({ folder: at('channel'), count: 30, kind: 'jpeg' });
    const host = spawn('/bin/sh', ['-c', FRAME_STREAM_COMMAND], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    host.stdin.end(frameStreamScript({ frames: placesOf(images) }));
    const made = await encode(images, {
      frames: readFrames(host.stdout, { frames: placesOf(images) }),
      type: 'video/webm',
    });
    expect(await probeVideo(made.outputPath)).toEqual({ frames: 30, width: 64, height: 48 });
  });

  it('reports progress that never decreases', async () => {
    const paths = await drawFrames({ folder: at('progress'), count: 90, width: 640, height: 480 });
    const fractions: number[] = [];
    const start = performance.now();
    await encode(paths, { onProgress: fraction => fractions.push(fraction) });
    console.info(`90 frames of 640×480 in ${Math.round(performance.now() - start)} ms`);
    expect(fractions.length).toBeGreaterThan(0);
    expect(fractions).toEqual([...fractions].sort((a, b) => a - b));
    expect(fractions.at(-1)).toBe(1);
  });
});

/** One pixel of a video's first picture, as RGB. */
async function readPixel(path: string, { x, y }: { x: number; y: number }): Promise<number[]> {
  const output = [
    '-frames:v',
    '1',
    '-vf',
    'scale=in_color_matrix=bt709',
    '-pix_fmt',
    'rgb24',
    '-f',
    'rawvideo',
    '-',
  ];
  const raw = execFileSync('ffmpeg', ['-loglevel', 'error', '-i', path, ...output]);
  const { width } = await probeVideo(path);
  const offset = (y * width + x) * 3;
  return [...raw.subarray(offset, offset + 3)];
}
