import { isLarge, type ParsedHeader } from './frame-info.ts';

const CUT = { problem: 'is cut short', more: true } as const;

/** A bitmap of Windows or OS/2: after 14 bytes a header follows that begins with its own length. */
export function parseBmp(head: Buffer): ParsedHeader {
  const length = head.readUInt32LE(14);
  if (length === 12)
    return {
      kind: 'bmp',
      width: head.readUInt16LE(18),
      height: head.readUInt16LE(20),
      alpha: true,
    };
  if (length < 40 || length > 256) return { problem: 'is a broken BMP image' };
  if (head.length < 30) return CUT;
  // A negative height: the rows go from top to bottom.
  const [width, height] = [head.readInt32LE(18), Math.abs(head.readInt32LE(22))];
  // Large ones of 24 bits a pixel are not blended, for the memory.
  if (head.readUInt16LE(28) === 24 && isLarge({ width, height }))
    return { kind: 'bmp', width, height };
  // Any other may hold listed or transparent colours: the masks of its channels say so.
  return { kind: 'bmp', width, height, alpha: true };
}

/** Netpbm: numbers in ASCII between white space and comments. */
export function parsePnm(head: Buffer): ParsedHeader {
  const text = head.toString('latin1', 0, 4096).replace(/#[^\r\n]*/g, '');
  const found = /^P[2356]\s+(\d+)\s+(\d+)\s+(\d+)\s/.exec(text);
  if (found) return { kind: 'pnm', width: Number(found[1]), height: Number(found[2]) };
  return /^P[2356][\s\d]*$/.test(text) ? CUT : { problem: 'is a broken PPM or PGM image' };
}

/** Deep pictures and those in several parts have no single plane of colours. */
const EXR_UNUSUAL = 0x1800;

/** OpenEXR: attributes of name, type, length and value, up to an empty name. */
export function parseExr(head: Buffer): ParsedHeader {
  if (head.length < 9) return CUT;
  if (head.readUInt32LE(4) & EXR_UNUSUAL)
    return { problem: 'is an EXR image of several parts, or a deep one, which are not taken' };
  let size: { width: number; height: number } | undefined;
  for (let at = 8; ; ) {
    if (head[at] === 0) break;
    const [name, type] = [readText(head, at), readText(head, at, 1)];
    if (name === undefined || type === undefined) return CUT;
    const value = at + name.length + type.length + 6;
    if (value > head.length) return CUT;
    const length = head.readUInt32LE(value - 4);
    if (length > 2 ** 20) return { problem: 'is a broken EXR image' };
    if (name === 'displayWindow') {
      if (value + 16 > head.length) return CUT;
      const [left, top, right, bottom] = [0, 4, 8, 12].map(i => head.readInt32LE(value + i));
      size = {
        width: (right ?? 0) - (left ?? 0) + 1,
        height: (bottom ?? 0) - (top ?? 0) + 1,
      };
    }
    at = value + length;
    if (at >= head.length) return CUT;
  }
  return size ? { kind: 'exr', ...size } : { problem: 'is a broken EXR image' };
}

/** The text that ends with a NUL, or the one after it. */
function readText(head: Buffer, from: number, skip = 0): string | undefined {
  const end = head.indexOf(0, from);
  if (end < 0) return undefined;
  return skip > 0 ? readText(head, end + 1, skip - 1) : head.toString('latin1', from, end);
}
