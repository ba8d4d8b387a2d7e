import sharp from 'sharp';
import { describe, expect, it } from 'vitest';
import { drawFrame } from '../../test/harness/files/draw-frames.ts';
import { makeExr } from '../../test/harness/files/make-exr.ts';
import { MAX_SIDE, parseFrameHeader, TAKEN_KINDS } from './frame-header.ts';

describe('parseFrameHeader', () => {
  it('finds kind and size by the bytes', async () => {
    const size = { width: 63, height: 41 };
    expect(parseFrameHeader(await drawFrame({ ...size, kind: 'png' }))).toEqual({
      kind: 'png',
      ...size,
      alpha: true,
    });
    expect(parseFrameHeader(await drawFrame({ ...size, kind: 'jpeg' }))).toEqual({
      kind: 'jpeg',
      ...size,
    });
    for (const kind of ['tiff', 'webp', 'gif'] as const) {
      expect(parseFrameHeader(await drawFrame({ ...size, kind }))).toEqual({
        kind: 'other',
        format: kind,
      });
    }
  });

  it('reads progressive and grey JPEGs, and leaves those with four colours to the decoder', async () => {
    const picture = sharp(await drawFrame({ width: 30, height: 20, kind: 'png' }));
    const facts = { kind: 'jpeg', width: 30, height: 20 };
    expect(parseFrameHeader(await picture.clone().jpeg({ progressive: true }).toBuffer())).toEqual(
      facts,
    );
    expect(parseFrameHeader(await picture.clone().greyscale().jpeg().toBuffer())).toEqual(facts);
    const cmyk = await picture.clone().toColourspace('cmyk').jpeg().toBuffer();
    expect(parseFrameHeader(cmyk)).toEqual({ kind: 'other', format: 'jpeg' });
  });

  it('asks for a longer head of a JPEG with long metadata, and never reads past the head', async () => {
    const jpeg = await drawFrame({ width: 30, height: 20, kind: 'jpeg' });
    const segment = Buffer.alloc(4 + 60_000);
    segment.writeUInt32BE(0xffe1_0000 + 60_002);
    const long = Buffer.concat([jpeg.subarray(0, 2), segment, segment, jpeg.subarray(2)]);
    expect(parseFrameHeader(long)).toEqual({ kind: 'jpeg', width: 30, height: 20 });
    expect(parseFrameHeader(long.subarray(0, 65_536))).toMatchObject({ more: true });
    for (let length = 1; length < 200; length++) {
      const facts = parseFrameHeader(jpeg.subarray(0, length));
      expect('problem' in facts || facts.kind === 'jpeg', `${length} bytes`).toBe(true);
    }
  });

  it('leaves JPEGs with several pictures to the decoder', async () => {
    const jpeg = await drawFrame({ width: 30, height: 20, kind: 'jpeg' });
    const index = Buffer.from('ffe200084d5046000000', 'hex');
    const several = Buffer.concat([jpeg.subarray(0, 2), index, jpeg.subarray(2), jpeg]);
    expect(parseFrameHeader(several)).toEqual({ kind: 'other', format: 'jpeg' });
    expect(parseFrameHeader(several.subarray(0, 8))).toMatchObject({ more: true });
  });

  it('refuses an EXR without the channels of a picture, and names those it has', () => {
    const size = { width: 2, height: 1 };
    const parse = (...names: string[]) =>
      parseFrameHeader(makeExr(size, Object.fromEntries(names.map(name => [name, [0, 1]]))));
    for (const channels of [['R', 'G', 'B'], ['Y'], ['A', 'B', 'G', 'R', 'Z', 'depth.R']])
      expect(parse(...channels)).toMatchObject({ kind: 'exr', ...size });
    for (const [channels, named] of [
      [['Z'], 'Z'],
      [['R', 'G'], 'G, R'],
      [['beauty.R', 'beauty.G', 'beauty.B'], 'beauty.B, beauty.G, beauty.R'],
      [['Y', 'RY', 'BY'], 'BY, RY, Y'],
      [Array.from({ length: 9 }, (_, i) => `p.${i}`), 'p.0, p.1, p.2, p.3, p.4, p.5 …'],
    ] as const)
      expect(parse(...channels)).toEqual({
        problem: `has the channels ${named}, and not R, G and B, or Y`,
      });
  });

  it('refuses files that are not pictures', () => {
    const notImages = ['#EXTM3U\nfile:///etc/passwd\n', 'ffconcat version 1.0\n', 'BM', 'P6x'];
    for (const text of notImages) {
      expect(parseFrameHeader(Buffer.from(text))).toEqual({
        problem: `is not an image of a kind that is taken: ${TAKEN_KINDS}`,
      });
    }
    for (const [text, name] of [
      ['<svg/>', 'SVG'],
      ['P4 1 1 ', 'PBM or PAM'],
      ['\0\0\0\x18ftypheic', 'HEIC'],
    ] as const) {
      expect(parseFrameHeader(Buffer.from(text))).toEqual({
        problem: `is of a kind that is not taken (${name}): taken are ${TAKEN_KINDS}`,
      });
    }
    expect(parseFrameHeader(Buffer.alloc(0))).toEqual({ problem: 'is empty' });
  });

  it('refuses a size that would fill the memory', async () => {
    const png = Buffer.from(await drawFrame({ width: 8, height: 8, kind: 'png' }));
    png.writeUInt32BE(MAX_SIDE, 16);
    png.writeUInt32BE(MAX_SIDE, 20);
    expect(parseFrameHeader(png)).toEqual({
      problem: expect.stringContaining('is too large: 16384×16384 pixels'),
    });
    png.writeUInt32BE(0, 16);
    expect(parseFrameHeader(png)).toEqual({ problem: 'states no size' });
  });
});
