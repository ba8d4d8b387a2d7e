/** Pictures larger than this are refused: 8192 × 8192 pixels, 256 MiB as RGBA. */
export const MAX_PIXELS = 2 ** 26;
/** The longest side that H.264 and VP9 encoders take. */
export const MAX_SIDE = 16_384;
/** Kinds that ffmpeg reads from a pipe. */
export type FrameKind = 'png' | 'jpeg';

/** What a frame's first bytes contain; sides in pixels. */
export type FrameInfo =
  | { kind: FrameKind; width: number; height: number }
  /** Must be decoded, which also gives its size. */
  | { kind: 'other'; format: string };

/**
 * Reads kind and size of a picture from its first bytes; its name does not matter. `more` means that the head ends before
 * the size: try again with a longer one. The formats follow the PNG specification, ITU-T T.81 (JPEG), TIFF 6.0, and the
 * container signatures of WebP, GIF and AVIF. Hand-made, because it decides what ffmpeg reads undecoded: packages such as
 * image-size neither refuse arithmetic coding nor find multi-picture files.
 */
export function parseFrameHeader(head: Buffer): FrameInfo | { problem: string; more?: true } {
  if (head.length === 0) return { problem: 'is empty' };
  if (startsWith(head, PNG_SIGNATURE)) return parsePng(head);
  if (startsWith(head, JPEG_SIGNATURE)) return parseJpeg(head);
  const format = detectOtherFormat(head);
  return format ? { kind: 'other', format } : { problem: 'is not an image' };
}

/** Why a picture of this size cannot be used, or undefined. */
export function findSizeProblem(width: number, height: number): string | undefined {
  if (width < 1 || height < 1) return 'states no size';
  if (width > MAX_SIDE || height > MAX_SIDE || width * height > MAX_PIXELS) {
    return `is too large: ${width}×${height} pixels`;
  }
  return undefined;
}

const PNG_SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex');
const JPEG_SIGNATURE = Buffer.from('ffd8ff', 'hex');

function parsePng(head: Buffer): FrameInfo | { problem: string; more?: true } {
  // The signature, IHDR's length and name, then width and height as 32-bit numbers.
  if (head.length < 24) return { problem: 'is cut short', more: true };
  if (head.toString('latin1', 12, 16) !== 'IHDR') return { problem: 'is a broken PNG image' };
  return withSize('png', head.readUInt32BE(16), head.readUInt32BE(20));
}

function withSize(kind: FrameKind, width: number, height: number): FrameInfo | { problem: string } {
  const problem = findSizeProblem(width, height);
  return problem ? { problem } : { kind, width, height };
}

/** Walks the marker segments up to the frame header (SOF). */
function parseJpeg(head: Buffer): FrameInfo | { problem: string; more?: true } {
  const short = { problem: 'is cut short', more: true } as const;
  const broken = { problem: 'is a broken JPEG image' };
  let at = 2;
  for (;;) {
    if (at >= head.length) return short;
    if (head[at] !== 0xff) return broken;
    // Any number of fill bytes may precede a marker.
    while (head[at] === 0xff) at++;
    const marker = head[at++];
    if (marker === undefined) return short;
    if (isStandalone(marker)) continue;
    if (at + 2 > head.length) return short;
    const length = head.readUInt16BE(at);
    if (length < 2 || marker === SOS || marker === EOI) return broken;
    if (marker === APP2 && head.length < at + 6) return short;
    if (marker === APP2 && head.toString('latin1', at + 2, at + 6) === 'MPF\0') {
      return { kind: 'other', format: 'jpeg' };
    }
    if (isFrameHeader(marker)) {
      if (at + 8 > head.length) return short;
      return readFrameHeader(marker, head.subarray(at, at + 8));
    }
    at += length;
  }
}

const SOS = 0xda;
/** May hold an index of further pictures (CIPA DC-007), which ffmpeg would read as frames. */
const APP2 = 0xe2;
const EOI = 0xd9;

function isStandalone(marker: number): boolean {
  return marker === 0x01 || (marker >= 0xd0 && marker <= 0xd8);
}

/** SOF0…SOF15, without DHT (C4), JPG (C8) and DAC (CC) among them. */
function isFrameHeader(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
}

/** ffmpeg reads baseline, extended and progressive pictures of 8 bits with Huffman codes. */
function readFrameHeader(marker: number, header: Buffer): FrameInfo | { problem: string } {
  const [precision, components] = [header[2], header[7]];
  const isPlain = marker <= 0xc2 && precision === 8 && (components === 1 || components === 3);
  if (!isPlain) return { kind: 'other', format: 'jpeg' };
  return withSize('jpeg', header.readUInt16BE(5), header.readUInt16BE(3));
}

/** Formats that are decoded. SVG is not among them, because it can refer to other files. */
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
