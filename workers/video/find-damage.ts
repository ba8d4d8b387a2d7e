import { crc32 } from 'node:zlib';
import { cutShort } from './cut-short.ts';
import { findJpegDamage } from './find-jpeg-damage.ts';

/** Why a file's layout is damaged, found without decoding it; undefined if it is not. PNG has a checksum per chunk. */
export function findDamage(bytes: Buffer): string | undefined {
  if (bytes[0] === 0x89) return findPngDamage(bytes);
  if (bytes[0] === 0xff) return findJpegDamage(bytes);
  const type = bytes.toString('latin1', 0, 2);
  if (type === 'BM') return findBmpDamage(bytes);
  if (type === 'P5' || type === 'P6') return findPnmDamage(bytes);
  if (type === 'P2' || type === 'P3') return findAsciiDamage(bytes);
  if (bytes.readUInt32LE(0) === 0x01312f76) return findExrDamage(bytes);
  return undefined;
}

/**
 * 256 MiB may hold millions of empty chunks, which would block the worker for half a minute. libpng writes 8 kB chunks.
 */
const MAX_CHUNKS = 100_000;

function findPngDamage(bytes: Buffer): string | undefined {
  let chunks = 0;
  for (let at = 8; ; ) {
    if (++chunks > MAX_CHUNKS) return `has more than ${MAX_CHUNKS} chunks`;
    if (at + 12 > bytes.length) return cutShort(bytes);
    const length = bytes.readUInt32BE(at);
    const type = bytes.toString('latin1', at + 4, at + 8);
    if (!/^[A-Za-z]{4}$/.test(type)) return `is damaged at byte ${at}`;
    const end = at + 8 + length;
    if (end + 4 > bytes.length) return cutShort(bytes);
    if (crc32(bytes.subarray(at + 4, end)) !== bytes.readUInt32BE(end))
      return `is damaged at byte ${at}: a checksum differs (${type})`;
    if (type === 'IEND') return undefined;
    at = end + 4;
  }
}

/** Compressed bitmaps may be of any length. */
function findBmpDamage(bytes: Buffer): string | undefined {
  if (bytes.length < 34 || bytes.readUInt32LE(14) < 40) return undefined;
  const compression = bytes.readUInt32LE(30);
  if (compression !== 0 && compression !== 3) return undefined;
  const row = Math.ceil((bytes.readInt32LE(18) * bytes.readUInt16LE(28)) / 32) * 4;
  const needed = bytes.readUInt32LE(10) + row * Math.abs(bytes.readInt32LE(22));
  return bytes.length < needed ? cutShort(bytes) : undefined;
}

function findPnmDamage(bytes: Buffer): string | undefined {
  const text = bytes.toString('latin1', 0, 4096);
  const found = /^P([56])(?:\s|#[^\n]*\n)+(\d+)(?:\s|#[^\n]*\n)+(\d+)(?:\s|#[^\n]*\n)+(\d+)\s/.exec(
    text,
  );
  if (!found) return undefined;
  const [width, height, most] = [found[2], found[3], found[4]].map(Number);
  const pixel = (found[1] === '6' ? 3 : 1) * ((most ?? 0) > 255 ? 2 : 1);
  const needed = found[0].length + (width ?? 0) * (height ?? 0) * pixel;
  return bytes.length < needed ? cutShort(bytes) : undefined;
}

/** ASCII PGM and PPM: numbers between white space and comments; the first three belong to the header. */
function findAsciiDamage(bytes: Buffer): string | undefined {
  const header: number[] = [];
  let count = 0;
  for (let at = 2; at < bytes.length; ) {
    const byte = bytes[at] as number;
    if (byte === HASH) {
      // Not by indexOf(): there may be as many comments as bytes.
      while (at < bytes.length && bytes[at] !== LINE_FEED) at++;
    } else if (byte <= SPACE) at++;
    else {
      const start = at;
      while (at < bytes.length && (bytes[at] as number) > SPACE && bytes[at] !== HASH) at++;
      if (header.length < 3) header.push(Number(bytes.toString('latin1', start, at)));
      else count++;
    }
  }
  const [width = 0, height = 0] = header;
  return count < width * height * (bytes[1] === THREE ? 3 : 1) ? cutShort(bytes) : undefined;
}

const [LINE_FEED, SPACE, HASH, THREE] = [10, 32, 35, 51];

/**
 * After the header comes the table of offsets: in a scan-line picture a block that begins within the file also ends
 * there.
 */
function findExrDamage(bytes: Buffer): string | undefined {
  const isTiled = (bytes.readUInt32LE(4) & 0x200) !== 0;
  const window = bytes.indexOf('dataWindow\0box2i\0');
  const compression = bytes.indexOf('compression\0compression\0');
  const lineOrder = bytes.indexOf('lineOrder\0lineOrder\0');
  if (isTiled || window < 0 || compression < 0 || lineOrder < 0) return undefined;
  if (window + 37 > bytes.length) return cutShort(bytes);
  const lines = [1, 1, 1, 16, 32, 16, 32, 32, 32, 256][bytes[compression + 28] ?? 0] ?? 1;
  const [top, bottom] = [bytes.readInt32LE(window + 25), bytes.readInt32LE(window + 33)];
  const blocks = Math.ceil((bottom - top + 1) / lines);
  const table = findHeaderEnd(bytes);
  if (table === undefined || table + 8 * blocks > bytes.length) return cutShort(bytes);
  for (let block = 0; block < blocks; block++) {
    const entry = table + 8 * block;
    const at = bytes.readUInt32LE(entry) + bytes.readUInt32LE(entry + 4) * 2 ** 32;
    if (at + 8 > bytes.length || at + 8 + bytes.readUInt32LE(at + 4) > bytes.length)
      return cutShort(bytes);
  }
  return undefined;
}

function findHeaderEnd(bytes: Buffer): number | undefined {
  let at = 8;
  for (let i = 0; i < MAX_CHUNKS && at < bytes.length; i++) {
    if (bytes[at] === 0) return at + 1;
    const type = bytes.indexOf(0, at) + 1;
    const size = bytes.indexOf(0, type) + 1;
    if (type === 0 || size === 0 || size + 4 > bytes.length) return undefined;
    at = size + 4 + bytes.readUInt32LE(size);
  }
  return undefined;
}
