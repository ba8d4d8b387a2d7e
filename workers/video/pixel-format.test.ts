import sharp, { type Sharp } from 'sharp';
import { expect, test } from 'vitest';
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
