import sharp, { type Sharp } from 'sharp';
import { expect, test } from 'vitest';
import { makeExr } from '../../test/harness/files/make-exr.ts';
import { pixelFormatOf } from './pixel-format.ts';

const picture = sharp({ create: { width: 16, height: 16, channels: 3, background: '#336699' } });
const stored = (make: (given: Sharp) => Sharp) => make(picture.clone()).toBuffer();

test('pictures whose pixels are stored in other ways have other formats', async () => {
  const files = await Promise.all([
    stored(given => given.png()),
    stored(given => given.ensureAlpha().png()),
    stored(given => given.toColourspace('b-w').png()),
    stored(given => given.toColourspace('rgb16').png()),
    stored(given => given.png({ palette: true })),
    stored(given => given.jpeg({ chromaSubsampling: '4:2:0' })),
    stored(given => given.jpeg({ chromaSubsampling: '4:4:4' })),
    stored(given => given.toColourspace('b-w').jpeg()),
    Promise.resolve(Buffer.from('P6 1 1 255\nabc')),
    Promise.resolve(Buffer.from('P5 1 1 255\na')),
    Promise.resolve(Buffer.from('P5 # a\n1 1 65535\nab')),
  ]);
  const formats = files.map(pixelFormatOf);
  expect(new Set(formats).size).toBe(files.length);
  expect(pixelFormatOf(await stored(given => given.modulate({ hue: 90 }).png()))).toBe(formats[0]);
  expect(pixelFormatOf(await stored(given => given.jpeg({ progressive: true })))).toBe(formats[5]);
});

test('so have those that differ in their colours or channels alone', async () => {
  const plain = await stored(given => given.jpeg({ chromaSubsampling: '4:4:4' }));
  // Adobe's marker: the three components are RGB, or YCbCr.
  const [rgb, ycc] = [0, 1].map(transform =>
    Buffer.concat([
      plain.subarray(0, 2),
      Buffer.from([0xff, 0xee, 0, 14, ...Buffer.from('Adobe'), 0, 100, 0, 0, 0, 0, transform]),
      plain.subarray(2),
    ]),
  ) as [Buffer, Buffer];
  const bitmap = (alphaMask: number, size = 108) => {
    const head = Buffer.alloc(126);
    head.write('BM');
    for (const [at, value] of [
      [10, 14 + size],
      [14, size],
      [18, 1],
      [22, 1],
      [26, 1 + (32 << 16)],
      [30, 3],
      [54, 0xff0000],
      [58, 0xff00],
      [62, 0xff],
      [66, alphaMask],
    ] as const)
      head.writeUInt32LE(value, at);
    return head;
  };
  const exr = (...names: string[]) =>
    makeExr({ width: 1, height: 1 }, Object.fromEntries(names.map(name => [name, [1]])));
  for (const [one, other] of [
    [rgb, ycc],
    [bitmap(0), bitmap(0xff000000)],
    [exr('R', 'G', 'B'), exr('R', 'G', 'B', 'A')],
    [exr('Y'), exr('R', 'G', 'B')],
  ] as const) {
    expect(pixelFormatOf(one)).not.toBe(pixelFormatOf(other));
    expect(pixelFormatOf(one)).toBe(pixelFormatOf(Buffer.from(one)));
  }
  // After a short header the pixels follow.
  expect(pixelFormatOf(bitmap(1, 40))).toBe(pixelFormatOf(bitmap(2, 40)));
});
