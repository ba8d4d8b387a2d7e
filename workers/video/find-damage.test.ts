import { crc32 } from 'node:zlib';
import { expect, test } from 'vitest';
import { drawBusyJpeg } from '../../test/harness/files/draw-frames.ts';
import { findDamage } from './find-damage.ts';
import { parseFrameHeader } from './frame-header.ts';

const attribute = (name: string, type: string, value: number[]) =>
  Buffer.concat([
    Buffer.from(`${name}\0${type}\0`),
    Buffer.from(Int32Array.of(value.length).buffer),
    Buffer.from(value),
  ]);
const window = [0, 0, 0, 0, 0, 0, 0, 0, 63, 0, 0, 0, 63, 0, 0, 0];

test('a picture whose window of data is cut short is damaged', () => {
  const bytes = Buffer.concat([
    Buffer.from([0x76, 0x2f, 0x31, 0x01, 2, 0, 0, 0]),
    attribute('channels', 'chlist', [...Buffer.from('Y\0'), ...Array(16).fill(0), 0]),
    attribute('displayWindow', 'box2i', window),
    attribute('compression', 'compression', [0]),
    attribute('lineOrder', 'lineOrder', [0]),
    attribute('dataWindow', 'box2i', []),
    Buffer.from([0]),
  ]);
  expect(parseFrameHeader(bytes)).toMatchObject({ kind: 'exr', width: 64, height: 64 });
  expect(findDamage(bytes)).toContain('cut short');
});

test('a picture in ASCII has a number for each of its pixels', () => {
  const whole = 'P2 # grey\n3 2\n255\n1 2 3 # a row\n4 5 6';
  expect(findDamage(Buffer.from(whole))).toBeUndefined();
  expect(findDamage(Buffer.from(whole.slice(0, -2)))).toContain('cut short');
  expect(findDamage(Buffer.from('P3 1 1 255 1 2 3\n'))).toBeUndefined();
  expect(findDamage(Buffer.from('P3 1 1 255 1 2\n'))).toContain('cut short');
});

test('a PNG of more chunks than anybody writes is not walked to its end', () => {
  const chunk = (type: string, data: Buffer) => {
    const named = Buffer.concat([Buffer.from(type), data]);
    const [length, checksum] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    checksum.writeUInt32BE(crc32(named));
    return Buffer.concat([length, named, checksum]);
  };
  const header = chunk('IHDR', Buffer.from([0, 0, 0, 1, 0, 0, 0, 1, 8, 2, 0, 0, 0]));
  const png = (empty: number) =>
    Buffer.concat([
      Buffer.from('89504e470d0a1a0a', 'hex'),
      header,
      Buffer.alloc(12 * empty, chunk('tEXt', Buffer.alloc(0))),
      chunk('IEND', Buffer.alloc(0)),
    ]);
  expect(findDamage(png(1_000))).toBeUndefined();
  expect(findDamage(png(200_000))).toBe('has more than 100000 chunks');
  expect(parseFrameHeader(png(1_000))).toMatchObject({ kind: 'png' });
  expect(parseFrameHeader(png(200_000))).toEqual({ problem: 'is a broken PNG image' });
});

test('a JPEG with a marker in its data that cannot be there is damaged, and one with restarts is not', async () => {
  const whole = await drawBusyJpeg();
  expect(findDamage(whole)).toBeUndefined();
  const middle = whole.length >> 1;
  const withMarker = (marker: number) =>
    Buffer.from(whole).fill(Buffer.from([0xff, marker]), middle, middle + 2);
  for (const marker of [0xd3, 0xd0, 0x45])
    expect(findDamage(withMarker(marker))).toBe(`is damaged at byte ${middle}`);
  expect(findDamage(whole.subarray(0, -2))).toContain('cut short');

  const scan = (...restarts: number[]) => [
    ...[0xff, 0xda, 0, 2, 1, 0xff, 0],
    ...restarts.flatMap(n => [0xff, 0xd0 + n, 1]),
  ];
  const segments = (interval: number, ...scans: number[][]) =>
    Buffer.from([0xff, 0xd8, 0xff, 0xdd, 0, 4, 0, interval, ...scans.flat(), 0xff, 0xd9]);
  const counted = [0, 1, 2, 3, 4, 5, 6, 7, 0];
  expect(findDamage(segments(1, scan(...counted), scan(0)))).toBeUndefined();
  expect(findDamage(segments(0, scan(), scan()))).toBeUndefined();
  for (const damaged of [
    segments(0, scan(0)),
    segments(1, scan(0, 2)),
    segments(1, scan(), scan(1)),
  ])
    expect(findDamage(damaged)).toContain('is damaged at byte');
});
