import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import sharp from 'sharp';
import { afterEach, describe, expect, it } from 'vitest';
import { packageRoot } from '../../shared/process/package-root.ts';
import { drawBusyJpeg, drawFrame } from '../../test/harness/files/draw-frames.ts';
import { makeTiff } from '../../test/harness/files/make-tiff.ts';
import { waitFor } from '../../test/harness/wait-for.ts';
import { Decoder } from './decoder.ts';

let decoder = new Decoder();
afterEach(() => {
  decoder.close();
  decoder = new Decoder();
});

/** This process's own children of that title. */
function findDecoders(): number[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .filter(pid => {
      try {
        const [, parent] =
          /^PPid:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
        const title = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
        return Number(parent) === process.pid && title.startsWith('windlass-child-decode');
      } catch {
        return false;
      }
    })
    .map(Number);
}

describe('Decoder', () => {
  it('converts coloured and grey pictures to raw RGB of 8 bits', async () => {
    const background = { r: 200, g: 100, b: 50, alpha: 0.5 };
    const colours = sharp({ create: { width: 3, height: 2, channels: 4, background } });
    // Half of it is the background.
    const bytes = Buffer.from(Array.from({ length: 6 }, () => [100, 50, 25]).flat());
    for (const picture of [
      colours.clone().png(),
      colours.clone().webp({ lossless: true, exact: true }),
      colours.clone().tiff({ compression: 'lzw' }),
    ]) {
      const decoded = await decoder.decode(await picture.toBuffer(), 'raw');
      expect(decoded).toEqual({ width: 3, height: 2, bytes });
    }
    const grey = sharp(Buffer.alloc(6, 77), { raw: { width: 3, height: 2, channels: 1 } });
    for (const picture of [
      grey.clone().tiff(),
      grey.clone().toColourspace('grey16').tiff({ compression: 'lzw' }),
      grey.clone().webp({ lossless: true }),
    ]) {
      const decoded = await decoder.decode(await picture.toBuffer(), 'raw');
      expect(decoded).toEqual({ width: 3, height: 2, bytes: Buffer.alloc(18, 77) });
    }
  });

  it('refuses samples of other types than 8 or 16 bits, and names the type', async () => {
    const size = { width: 4, height: 2 };
    const decode = (format: 'unsigned' | 'signed' | 'float', bits: number) =>
      decoder.decode(makeTiff(size, { format, bits }, Buffer.alloc(bits, 0x3f)), 'raw');
    for (const bits of [8, 16])
      expect(await decode('unsigned', bits)).toMatchObject({ bytes: Buffer.alloc(24, 0x3f) });
    for (const [format, bits, name] of [
      ['float', 32, 'float'],
      ['unsigned', 32, 'uint'],
      ['signed', 16, 'short'],
      ['signed', 8, 'char'],
    ] as const)
      expect(await decode(format, bits), name).toEqual({
        problem: `has samples of the type ${name}; taken are unsigned ones of 8 or 16 bits`,
      });
    expect(await decode('float', 64)).toEqual({
      problem: 'cannot be decoded: its samples are of a type that is not taken',
    });
  });

  it('refuses a JPEG that has lost data, and no whole one that is odd', async () => {
    const whole = await drawBusyJpeg();
    const third = Math.floor(whole.length / 3);
    const zeroed = Buffer.from(whole).fill(0, third, 2 * third);
    const lost = Buffer.concat([whole.subarray(0, third), whole.subarray(2 * third)]);
    for (const format of ['raw', 'none'] as const)
      for (const frame of [zeroed, lost])
        expect(await decoder.decode(frame, format)).toMatchObject({
          problem: expect.stringContaining('its data are damaged'),
        });
    const inserted = (at: number, bytes: Buffer) =>
      Buffer.concat([whole.subarray(0, at), bytes, whole.subarray(at)]);
    const scan = Buffer.from(whole);
    // The last spectral coefficient, of which progressive ones alone may have fewer.
    const start = scan.indexOf(Buffer.from([0xff, 0xda]));
    scan[start + scan.readUInt16BE(start + 2)] = 1;
    for (const [what, frame] of Object.entries({
      whole,
      'with bytes after its end': inserted(whole.length, Buffer.alloc(700)),
      'with bytes between its headers': inserted(20, Buffer.alloc(3)),
      'with odd parameters': scan,
    }))
      expect(await decoder.decode(frame, 'none'), what).toMatchObject({ width: 256 });
  });

  it('takes colours as they are stored, whatever profile a picture embeds, as ffmpeg does', async () => {
    const size = { width: 16, height: 8 };
    const create = { ...size, channels: 3, background: '#c03020' } as const;
    const drawn = sharp({ create }).withIccProfile('p3');
    for (const picture of [drawn.clone().tiff({ compression: 'lzw' }), drawn.clone().png()]) {
      const frame = await picture.toBuffer();
      expect((await sharp(frame).metadata()).icc).toBeDefined();
      const bytes = await sharp(frame, { ignoreIcc: true }).raw().toBuffer();
      expect(bytes.subarray(0, 3)).not.toEqual(Buffer.from([0xc0, 0x30, 0x20]));
      expect(await decoder.decode(frame, 'raw')).toEqual({ ...size, bytes });
    }
  });

  it('shows pixels as they are stored, whatever orientation Exif data state', async () => {
    const pixels = Buffer.concat([Buffer.alloc(24 * 4, 255), Buffer.alloc(24 * 4)]);
    const drawn = sharp(pixels, { raw: { width: 8, height: 8, channels: 3 } });
    const turned = drawn.withMetadata({ orientation: 3 });
    for (const picture of [
      turned.clone().png(),
      turned.clone().webp({ lossless: true }),
      turned.clone().tiff({ compression: 'lzw' }),
    ]) {
      const frame = await picture.toBuffer();
      expect((await sharp(frame).metadata()).orientation).toBe(3);
      expect(await decoder.decode(frame, 'raw')).toEqual({ width: 8, height: 8, bytes: pixels });
    }
  });

  it('opens only pictures, and none that is too large', async () => {
    const svg = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>';
    expect(await decoder.decode(Buffer.from(svg), 'raw')).toMatchObject({
      problem: expect.stringContaining('cannot be decoded'),
    });
    const create = { width: 16_384, height: 4_097, channels: 3, background: 'red' } as const;
    const large = await sharp({ create }).tiff({ compression: 'deflate' }).toBuffer();
    expect(await decoder.decode(large, 'raw')).toMatchObject({
      problem: expect.stringContaining('pixel'),
    });
    expect(await decoder.decode(Buffer.alloc(0), 'raw')).toMatchObject({
      problem: expect.any(String),
    });
  });

  it('reads only the size of one with more pixels than it may have', async () => {
    const frame = await drawFrame({ width: 40, height: 30, kind: 'webp' });
    expect(await decoder.decode(frame, 'raw', 1_199)).toEqual({
      width: 40,
      height: 30,
      bytes: Buffer.alloc(0),
    });
    const { bytes } = (await decoder.decode(frame, 'raw', 1_200)) as { bytes: Buffer };
    expect(bytes).toHaveLength(40 * 30 * 3);
  });

  it('decodes a picture once more in another child after a crash', async () => {
    const frame = await drawFrame({ width: 2000, height: 2000, kind: 'webp' });
    expect(await decoder.decode(frame, 'png')).toMatchObject({ width: 2000 });
    const [pid = 0] = findDecoders();
    process.kill(pid, 'SIGSTOP');
    const decoding = decoder.decode(frame, 'png');
    process.kill(pid, 'SIGKILL');
    expect(await decoding).toMatchObject({ width: 2000 });
    expect(findDecoders()).not.toContain(pid);
    expect(findDecoders()).toHaveLength(1);
  });

  it('reports a problem when a second child crashes, and starts another', async () => {
    const frame = await drawFrame({ width: 2000, height: 2000, kind: 'webp' });
    expect(await decoder.decode(frame, 'png')).toMatchObject({ width: 2000 });
    const [first = 0] = findDecoders();
    process.kill(first, 'SIGSTOP');
    const decoding = decoder.decode(frame, 'png');
    process.kill(first, 'SIGKILL');
    const isOther = (pid: number) => pid !== first;
    const second = await waitFor(() => findDecoders().find(isOther), {
      what: 'the second child',
      intervalMs: 1,
    });
    process.kill(second, 'SIGKILL');
    expect(await decoding).toEqual({ problem: 'cannot be decoded: the decoder crashed' });
    expect(await decoder.decode(frame, 'png')).toMatchObject({ width: 2000 });
    expect(findDecoders()).toHaveLength(1);
    decoder.close();
    await waitFor(() => findDecoders().length === 0, { what: 'the child to end' });
    expect(await decoder.decode(frame, 'png')).toEqual({ problem: 'was not decoded' });
  });

  it('has a child that exits at the end of its standard input', async () => {
    const program = fileURLToPath(new URL('dist/workers/video/decode-child.js', packageRoot));
    const child = spawn(process.execPath, [program], { stdio: ['pipe', 'ignore', 'ignore'] });
    child.stdin.end(Buffer.from([0, 0, 0, 1]));
    expect(await new Promise(resolve => child.once('close', resolve))).toBe(0);
  });
});
