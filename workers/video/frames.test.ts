import sharp from 'sharp';
import { describe, expect, it } from 'vitest';
import type { WindlassError } from '../../shared/errors.ts';
import { drawFrame } from './draw-frames.ts';
import { FrameCheck } from './frame-check.ts';
import { inspectFrame, MAX_SIDE } from './frames.ts';

describe('inspectFrame', () => {
  it('finds kind and size by the bytes', async () => {
    const size = { width: 63, height: 41 };
    expect(inspectFrame(await drawFrame({ ...size, kind: 'png' }))).toEqual({
      kind: 'png',
      ...size,
    });
    expect(inspectFrame(await drawFrame({ ...size, kind: 'jpeg' }))).toEqual({
      kind: 'jpeg',
      ...size,
    });
    for (const kind of ['tiff', 'webp', 'gif'] as const) {
      expect(inspectFrame(await drawFrame({ ...size, kind }))).toEqual({
        kind: 'other',
        format: kind,
      });
    }
  });

  it('reads progressive and grey JPEGs, and leaves those with four colours to the decoder', async () => {
    const picture = sharp(await drawFrame({ width: 30, height: 20, kind: 'png' }));
    const facts = { kind: 'jpeg', width: 30, height: 20 };
    expect(inspectFrame(await picture.clone().jpeg({ progressive: true }).toBuffer())).toEqual(
      facts,
    );
    expect(inspectFrame(await picture.clone().greyscale().jpeg().toBuffer())).toEqual(facts);
    const cmyk = await picture.clone().toColourspace('cmyk').jpeg().toBuffer();
    expect(inspectFrame(cmyk)).toEqual({ kind: 'other', format: 'jpeg' });
  });

  it('asks for more of a JPEG whose metadata is long, and never reads past what it has', async () => {
    const jpeg = await drawFrame({ width: 30, height: 20, kind: 'jpeg' });
    const segment = Buffer.alloc(4 + 60_000);
    segment.writeUInt32BE(0xffe1_0000 + 60_002);
    const long = Buffer.concat([jpeg.subarray(0, 2), segment, segment, jpeg.subarray(2)]);
    expect(inspectFrame(long)).toEqual({ kind: 'jpeg', width: 30, height: 20 });
    expect(inspectFrame(long.subarray(0, 65_536))).toMatchObject({ more: true });
    for (let length = 1; length < 200; length++) {
      const facts = inspectFrame(jpeg.subarray(0, length));
      expect('problem' in facts || facts.kind === 'jpeg', `${length} bytes`).toBe(true);
    }
  });

  it('leaves JPEGs that hold several pictures to the decoder', async () => {
    const jpeg = await drawFrame({ width: 30, height: 20, kind: 'jpeg' });
    const index = Buffer.from('ffe200084d5046000000', 'hex');
    const several = Buffer.concat([jpeg.subarray(0, 2), index, jpeg.subarray(2), jpeg]);
    expect(inspectFrame(several)).toEqual({ kind: 'other', format: 'jpeg' });
    expect(inspectFrame(several.subarray(0, 8))).toMatchObject({ more: true });
  });

  it('refuses what is not a picture', () => {
    const notImages = ['#EXTM3U\nfile:///etc/passwd\n', 'ffconcat version 1.0\n', '<svg/>', 'BM'];
    for (const text of notImages) {
      expect(inspectFrame(Buffer.from(text))).toEqual({ problem: 'is not an image' });
    }
    expect(inspectFrame(Buffer.alloc(0))).toEqual({ problem: 'is empty' });
  });

  it('refuses a size that would fill the memory', async () => {
    const png = Buffer.from(await drawFrame({ width: 8, height: 8, kind: 'png' }));
    png.writeUInt32BE(MAX_SIDE, 16);
    png.writeUInt32BE(MAX_SIDE, 20);
    expect(inspectFrame(png)).toEqual({ problem: 'is too large: 16384×16384 pixels' });
    png.writeUInt32BE(0, 16);
    expect(inspectFrame(png)).toEqual({ problem: 'states no size' });
  });
});

describe('FrameCheck', () => {
  const png = { kind: 'png', width: 4, height: 2 } as const;

  it('names other sizes and other kinds, and the first of the good ones', () => {
    const check = new FrameCheck();
    check.add('/gone', { problem: 'is missing' });
    check.add('/0', png);
    check.add('/1', { ...png, width: 5 });
    check.add('/2', { ...png, kind: 'jpeg' });
    check.add('/3', { kind: 'other', format: 'tiff' });
    expect(check.first).toEqual(png);
    expect(check).toMatchObject({ looked: 5, bad: 4, ok: false, needsDecode: true });
    expect(check.problems).toEqual([
      { path: '/gone', reason: 'is missing' },
      { path: '/1', reason: 'is of another size: 5×2 pixels, the first is 4×2' },
      { path: '/2', reason: 'is of another kind: JPEG, the first is PNG' },
      { path: '/3', reason: 'is of another kind: TIFF, the first is PNG' },
    ]);
  });

  it('lets kinds differ where they are decoded, sizes never', () => {
    const check = new FrameCheck({ mixed: true });
    expect(check.add('/0', png)).toBe(true);
    expect(check.add('/1', { ...png, kind: 'jpeg' })).toBe(true);
    expect(check.add('/2', { kind: 'other', format: 'tiff' })).toBe(true);
    expect(check.addSize('/2', { width: 9, height: 9 })).toBe(false);
    expect(check).toMatchObject({ looked: 3, bad: 1, needsDecode: true });
  });

  it('lists twenty and counts all', () => {
    const check = new FrameCheck();
    for (let i = 0; i < 100; i++) check.add(`/bad\n${i}`, { problem: 'is missing' });
    const error = check.toError();
    expect(error).toMatchObject({
      code: 'bad_frames',
      extra: { count: 100 },
    } satisfies Partial<WindlassError>);
    expect(error.extra.frames).toHaveLength(20);
    expect(error.message).toBe(
      'Frames cannot be used: /bad\\n0 is missing; /bad\\n1 is missing; /bad\\n2 is missing; and 97 more.',
    );
    expect(() => check.assertUsable()).toThrow(error.message);
  });
});
