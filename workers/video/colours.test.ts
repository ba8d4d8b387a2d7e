import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findBundledFfmpeg } from '../../shared/process/bundled-ffmpeg.ts';
import { readLocalFrames } from '../../test/harness/files/draw-frames.ts';
import { makeExr } from '../../test/harness/files/make-exr.ts';
import { makeTempDir } from '../../test/harness/files/temp-dir.ts';
import { AMPLE } from '../../test/harness/files/video-limits.ts';
import { giveToDecoder } from '../sandbox/scratch-dir.ts';
import { type EncodeVideoOptions, encodeVideo } from './encode-video.ts';

const temp = makeTempDir('colours');
beforeAll(() => giveToDecoder(temp.path));
afterAll(() => temp.remove());
const at = (name: string) => join(temp.path, name);
const SIZE = { width: 64, height: 48 };

let video = 0;
/** The first picture of a video of this frame, as RGB. */
async function pictureOf(
  frame: Buffer,
  options: Partial<EncodeVideoOptions> = {},
): Promise<Buffer> {
  const path = at('frame');
  writeFileSync(path, frame);
  const outputPath = at(`video-${video++}`);
  const frames = readLocalFrames([path]);
  const settings = { type: 'video/mp4', quality: 1, limits: AMPLE, total: 1 } as const;
  await encodeVideo({ frames, outputPath, ...settings, ...options });
  const toRgb = ['-vf', 'scale=in_color_matrix=bt709:flags=bilinear', '-pix_fmt', 'rgb24'];
  return execFileSync('ffmpeg', ['-v', 'error', '-i', outputPath, ...toRgb, '-f', 'rawvideo', '-']);
}

/** Peak signal to noise ratio, in dB. */
function compare(a: Buffer, b: Buffer): number {
  expect(a.length).toBe(b.length);
  let sum = 0;
  for (const [i, value] of a.entries()) sum += (value - (b[i] ?? 0)) ** 2;
  return 10 * Math.log10(255 ** 2 / (sum / a.length));
}

/** Colours that change slowly, so that subsampling alone takes little from them. */
const SOURCE = Buffer.from(
  Array.from({ length: SIZE.height }, (_, y) =>
    Array.from({ length: SIZE.width }, (_, x) => [x * 3 + 20, y * 4 + 20, 200 - x - y]),
  ).flat(2),
);
const source = () => sharp(SOURCE, { raw: { ...SIZE, channels: 3 } });
const ffmpegMakes = (bytes: Buffer, ...words: string[]) =>
  execFileSync('ffmpeg', ['-v', 'error', '-i', '-', ...words, '-'], { input: bytes });

describe('the colours of a video', () => {
  const png = () => source().png().toBuffer();
  const KINDS: [string, () => Promise<Buffer>][] = [
    ['PNG', png],
    ['PNG of 16 bits', () => source().toColourspace('rgb16').png().toBuffer()],
    ['JPEG', () => source().jpeg({ quality: 98, chromaSubsampling: '4:4:4' }).toBuffer()],
    ['TIFF', () => source().tiff({ compression: 'lzw' }).toBuffer()],
    [
      'TIFF of 16 bits',
      () => source().toColourspace('rgb16').tiff({ compression: 'lzw' }).toBuffer(),
    ],
    ['WebP', () => source().webp({ lossless: true }).toBuffer()],
    ['AVIF', () => source().avif({ lossless: true }).toBuffer()],
    ['BMP', async () => ffmpegMakes(await png(), '-c:v', 'bmp', '-f', 'image2pipe')],
    ['PPM', async () => ffmpegMakes(await png(), '-c:v', 'ppm', '-f', 'image2pipe')],
    [
      'PPM of 16 bits',
      async () =>
        ffmpegMakes(await png(), '-pix_fmt', 'rgb48be', '-c:v', 'ppm', '-f', 'image2pipe'),
    ],
  ];
  it.each(KINDS)('are those of a %s', async (_kind, draw) => {
    expect(compare(await pictureOf(await draw()), SOURCE)).toBeGreaterThan(37);
  });

  it('are as true from a palette in a PNG as from one in a GIF', async () => {
    const gif = await source().gif({ dither: 0 }).toBuffer();
    const paletted = await sharp(gif).png({ palette: true, dither: 0 }).toBuffer();
    const looked = await sharp(paletted).removeAlpha().raw().toBuffer();
    expect(paletted[25]).toBe(3);
    const fromPng = compare(await pictureOf(paletted), looked);
    const fromGif = compare(await pictureOf(gif), await sharp(gif).removeAlpha().raw().toBuffer());
    expect(fromPng).toBeGreaterThan(36);
    expect(Math.abs(fromPng - fromGif)).toBeLessThan(2);
  });

  it('are grey where a frame is', async () => {
    const grey = await source().greyscale().raw().toBuffer();
    const three = Buffer.from([...grey].flatMap(value => [value, value, value]));
    const image = () => sharp(grey, { raw: { ...SIZE, channels: 1 } });
    const pgm = Buffer.concat([Buffer.from(`P5\n# comment\n64 48 255\n`), grey]);
    for (const frame of [
      await image().toColourspace('b-w').png().toBuffer(),
      await image().toColourspace('grey16').png().toBuffer(),
      await image().jpeg({ quality: 98 }).toBuffer(),
      pgm,
    ])
      expect(compare(await pictureOf(frame), three)).toBeGreaterThan(37);
  });

  it('are blended with the background where a frame is transparent, in every kind', async () => {
    // A hidden red: opacity falls from left to right.
    const pixels = Buffer.from(
      Array.from({ length: SIZE.width * SIZE.height }, (_, i) => [
        255,
        0,
        0,
        255 - (i % 64) * 4,
      ]).flat(),
    );
    const image = () => sharp(pixels, { raw: { ...SIZE, channels: 4 } });
    const frames = {
      png: await image().png().toBuffer(),
      'png of 16 bits': await image().toColourspace('rgb16').png().toBuffer(),
      webp: await image().webp({ lossless: true, exact: true }).toBuffer(),
      tiff: await image().tiff({ compression: 'lzw' }).toBuffer(),
      gif: await image().gif({ dither: 0 }).toBuffer(),
    };
    for (const background of ['#000000', '#ffffff', '#2040c0']) {
      for (const [kind, frame] of Object.entries(frames)) {
        const expected = await sharp(frame).flatten({ background }).removeAlpha().raw().toBuffer();
        const made = await pictureOf(frame, { background });
        expect(compare(made, expected), `${kind} on ${background}`).toBeGreaterThan(28);
      }
    }
  });

  it('of EXR are linear light made sRGB, and clipped above 1', async () => {
    // OpenEXR's own encoder: light from 0 to 1.5, in grey.
    const light = Array.from({ length: SIZE.width }, (_, x) => (x / 63) * 1.5);
    const floats = Buffer.alloc(SIZE.width * SIZE.height * 4);
    for (let i = 0; i < SIZE.width * SIZE.height; i++)
      floats.writeFloatLE(light[i % 64] ?? 0, 4 * i);
    const planes = Buffer.concat([floats, floats, floats]);
    const raw = ['-f', 'rawvideo', '-pix_fmt', 'gbrpf32le', '-s', '64x48', '-i', '-'];
    const exr = execFileSync(
      'ffmpeg',
      ['-v', 'error', ...raw, '-c:v', 'exr', '-compression', 'zip16', '-f', 'image2pipe', '-'],
      { input: planes },
    );
    const curve = (v: number) => (v <= 0.0031308 ? 12.92 * v : 1.055 * v ** (1 / 2.4) - 0.055);
    const expected = Buffer.from(
      Array.from({ length: SIZE.width * SIZE.height }, (_, i) => {
        const value = Math.round(255 * curve(Math.min(1, light[i % 64] ?? 0)));
        return [value, value, value];
      }).flat(),
    );
    for (const ffmpeg of ['ffmpeg', await findBundledFfmpeg()])
      expect(compare(await pictureOf(exr, { ffmpeg }), expected), ffmpeg).toBeGreaterThan(36);
  });

  const PIXELS = SIZE.width * SIZE.height;
  const plane = (valueAt: (x: number) => number) =>
    Array.from({ length: PIXELS }, (_, i) => valueAt(i % SIZE.width));
  const encoded = (v: number) => (v <= 0.0031308 ? 12.92 * v : 1.055 * v ** (1 / 2.4) - 0.055);

  it('of grey EXR are those of a coloured one', async () => {
    const light = plane(x => (x / 63) * 1.2);
    const expected = Buffer.from(
      light.flatMap(v => Array(3).fill(Math.round(255 * encoded(Math.min(1, v))))),
    );
    for (const ffmpeg of ['ffmpeg', await findBundledFfmpeg()])
      for (const names of ['Y', 'RGB']) {
        const exr = makeExr(SIZE, Object.fromEntries([...names].map(name => [name, light])));
        const made = compare(await pictureOf(exr, { ffmpeg }), expected);
        expect(made, `${names} by ${ffmpeg}`).toBeGreaterThan(36);
      }
  });

  it('of EXR are laid on the background where it is transparent', async () => {
    // As files have them: multiplied by their alpha. A transparent part, a half of dark red light, and an opaque one.
    const alpha = plane(x => (x < 20 ? 0 : x < 40 ? 0.5 : 1));
    const colour = [0.5, 0.25, 0.0625] as const;
    const [R, G, B] = colour.map(light => alpha.map(a => a * light));
    const exr = makeExr(SIZE, { R: R ?? [], G: G ?? [], B: B ?? [], A: alpha });
    for (const [background, behind] of [
      ['#000000', [0, 0, 0]],
      ['#ffffff', [255, 255, 255]],
      ['#2040c0', [32, 64, 192]],
    ] as const) {
      for (const ffmpeg of ['ffmpeg', await findBundledFfmpeg()]) {
        const made = await pictureOf(exr, { background, ffmpeg });
        // In the middle of each part.
        for (const x of [10, 30, 52])
          for (const [i, light] of colour.entries()) {
            const a = alpha[x] ?? 0;
            const meant = a * 255 * encoded(light) + (1 - a) * (behind[i] ?? 0);
            const off = Math.abs((made[3 * x + i] ?? 0) - meant);
            expect(off, `${i} at ${x} on ${background} by ${ffmpeg}`).toBeLessThan(5);
          }
      }
    }
  });
});
