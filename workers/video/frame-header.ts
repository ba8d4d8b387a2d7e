import { parseExr } from './frame-header-exr.ts';
import { parseJpeg } from './frame-header-jpeg.ts';
import { parseBmp, parsePnm } from './frame-header-other.ts';
import type { ParsedHeader } from './frame-info.ts';

/** Pictures larger than this are refused: 8192 × 8192 pixels, 256 MiB as RGBA. */
export const MAX_PIXELS = 2 ** 26;
/** The longest side that H.264 and VP9 encoders take. */
export const MAX_SIDE = 16_384;
/** The kinds that are taken, for whoever gave another one. */
export const TAKEN_KINDS = 'JPEG, PNG, TIFF, BMP, GIF, WebP, AVIF, PPM, PGM and EXR';

/**
 * Reads kind and size from a picture's first bytes, by the PNG specification, ITU-T T.81 (JPEG), TIFF 6.0, Netpbm, the
 * OpenEXR file layout, and the signatures of WebP, GIF and AVIF. Hand-made, as it decides what ffmpeg reads: image-size
 * accepts arithmetic coding and multi-picture files.
 */
export function parseFrameHeader(head: Buffer): ParsedHeader {
  if (head.length === 0) return { problem: 'is empty' };
  if (startsWith(head, PNG_SIGNATURE)) return checkSize(parsePng(head));
  if (startsWith(head, JPEG_SIGNATURE)) return checkSize(parseJpeg(head));
  if (startsWith(head, EXR_SIGNATURE)) return checkSize(parseExr(head));
  if (/^P[2356]\s/.test(head.toString('latin1', 0, 3))) return checkSize(parsePnm(head));
  if (head.toString('latin1', 0, 2) === 'BM' && head.length >= 26) return checkSize(parseBmp(head));
  const format = detectOtherFormat(head);
  if (format) return { kind: 'other', format };
  const known = FOREIGN.find(({ at, text }) =>
    text.includes(head.toString('latin1', at, at + (text[0]?.length ?? 0))),
  );
  return known
    ? { problem: `is of a kind that is not taken (${known.name}): taken are ${TAKEN_KINDS}` }
    : { problem: `is not an image of a kind that is taken: ${TAKEN_KINDS}` };
}

/** Why a picture of this size cannot be used, or undefined. */
export function findSizeProblem(width: number, height: number): string | undefined {
  if (width < 1 || height < 1) return 'states no size';
  if (width > MAX_SIDE || height > MAX_SIDE || width * height > MAX_PIXELS) {
    return `is too large: ${width}×${height} pixels, at most ${MAX_PIXELS} and ${MAX_SIDE} a side`;
  }
  return undefined;
}

const PNG_SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex');
const JPEG_SIGNATURE = Buffer.from('ffd8ff', 'hex');
const EXR_SIGNATURE = Buffer.from('762f3101', 'hex');

/** Images that are not taken, so that the answer can name them. */
const FOREIGN = [
  { name: 'SVG', at: 0, text: ['<svg'] },
  { name: 'PDF', at: 0, text: ['%PDF'] },
  { name: 'PBM or PAM', at: 0, text: ['P1', 'P4', 'P7'] },
  { name: 'HEIC', at: 4, text: ['ftypheic', 'ftypheix', 'ftypmif1', 'ftyphevc'] },
  { name: 'JPEG 2000', at: 4, text: ['jP  '] },
  { name: 'JPEG XL', at: 4, text: ['JXL '] },
  { name: 'Photoshop', at: 0, text: ['8BPS'] },
  { name: 'FITS', at: 0, text: ['SIMPLE'] },
  { name: 'DPX', at: 0, text: ['SDPX', 'XPDS'] },
  { name: 'Radiance HDR', at: 0, text: ['#?RADIANCE', '#?RGBE'] },
  { name: 'MP4 or QuickTime video', at: 4, text: ['ftyp'] },
  { name: 'XML or SVG', at: 0, text: ['<?xml'] },
];

function checkSize(parsed: ParsedHeader): ParsedHeader {
  if ('problem' in parsed || parsed.kind === 'other') return parsed;
  const problem = findSizeProblem(parsed.width, parsed.height);
  return problem ? { problem } : parsed;
}

const MAX_CHUNKS = 10_000;

/** Chunks up to the first IDAT: a tRNS there makes a picture without alpha channel transparent. */
function parsePng(head: Buffer): ParsedHeader {
  // The signature, IHDR's length and name, then width and height as 32-bit numbers, depth and colour type.
  if (head.length < 33) return { problem: 'is cut short', more: true };
  if (head.toString('latin1', 12, 16) !== 'IHDR') return { problem: 'is a broken PNG image' };
  const [width, height] = [head.readUInt32BE(16), head.readUInt32BE(20)];
  const size = { kind: 'png', width, height } as const;
  const colours = head[25] ?? 0;
  if (colours & 4) return { ...size, alpha: true };
  const palette = colours === 3 ? ({ palette: true } as const) : {};
  let at = 33;
  for (let chunks = 0; chunks < MAX_CHUNKS; chunks++, at += 12 + head.readUInt32BE(at)) {
    // A size that cannot be is told without the rest.
    if (at + 8 > head.length)
      return findSizeProblem(width, height)
        ? { ...size, ...palette }
        : { problem: 'is cut short', more: true };
    const type = head.toString('latin1', at + 4, at + 8);
    if (type === 'tRNS') return { ...size, ...palette, alpha: true };
    if (type === 'IDAT' || type === 'IEND') return { ...size, ...palette };
  }
  return { problem: 'is a broken PNG image' };
}

/** Formats that are decoded. Not SVG, because it can refer to other files. */
function detectOtherFormat(head: Buffer): string | undefined {
  const text = (from: number, to: number) => head.toString('latin1', from, to);
  if (['II*\0', 'MM\0*', 'II+\0', 'MM\0+'].includes(text(0, 4))) return 'tiff';
  if (text(0, 4) === 'RIFF' && text(8, 12) === 'WEBP') return 'webp';
  if (text(0, 6) === 'GIF87a' || text(0, 6) === 'GIF89a') return 'gif';
  if (text(4, 12) === 'ftypavif') return 'avif';
  return undefined;
}

function startsWith(bytes: Buffer, signature: Buffer): boolean {
  return bytes.subarray(0, signature.length).equals(signature);
}
