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
