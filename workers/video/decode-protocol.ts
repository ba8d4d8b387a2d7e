import type { ByteReader } from '../remote-files/byte-reader.ts';

/**
 * The protocol between a worker and its decoder process; integers have 32 bits.
 * Request: the picture's format (1 byte), the most pixels to decode, the frame's length, the frame.
 * Answer: 1 for a picture or 0 for a problem (1 byte); width, height, length; the picture's bytes or the problem's text.
 * Hand-made: Node's channels to children would serialize frames of 256 MB.
 */
const FORMATS = ['raw', 'png', 'jpeg', 'none'] as const;
/** `raw` is RGB of 8 bits without padding; `none` decodes the picture and returns no bytes. */
export type PictureFormat = (typeof FORMATS)[number];

/** Limit of bytes for each pixel of a picture, in any of the formats, even if it cannot be compressed. */
const MAX_PIXEL_BYTES = 4;
/** Limit of bytes of a file without its pixels. */
const MAX_OTHER_BYTES = 65_536;
/** Limit of bytes of a problem, of which one is kept for each frame. */
const MAX_PROBLEM_BYTES = 4_096;

export type Decoded = { width: number; height: number; bytes: Buffer } | { problem: string };

export interface DecodeRequest {
  frame: Buffer;
  format: PictureFormat;
  /** Limit of pixels: of a larger picture only the size is answered. */
  pixels: number;
}

export function writeRequest({ frame, format, pixels }: DecodeRequest): Buffer[] {
  const header = Buffer.alloc(9);
  header.writeUInt8(FORMATS.indexOf(format), 0);
  header.writeUInt32BE(pixels, 1);
  header.writeUInt32BE(frame.length, 5);
  return [header, frame];
}

export async function readRequest(reader: ByteReader): Promise<DecodeRequest> {
  const header = await reader.readExactly(9);
  const format = FORMATS[header.readUInt8(0)];
  if (!format) throw new Error('an unknown request');
  const frame = await reader.readExactly(header.readUInt32BE(5));
  return { format, pixels: header.readUInt32BE(1), frame };
}

export function writeAnswer(decoded: Decoded): Buffer[] {
  const header = Buffer.alloc(13);
  if ('problem' in decoded) {
    const text = Buffer.from(decoded.problem).subarray(0, MAX_PROBLEM_BYTES);
    header.writeUInt32BE(text.length, 9);
    return [header, text];
  }
  header.writeUInt8(1, 0);
  header.writeUInt32BE(decoded.width, 1);
  header.writeUInt32BE(decoded.height, 5);
  header.writeUInt32BE(decoded.bytes.length, 9);
  return [header, decoded.bytes];
}

/** The answer to such a request. Throws where it is longer than one can be, as of a decoder that a picture took over. */
export async function readAnswer(
  reader: ByteReader,
  request: Pick<DecodeRequest, 'format' | 'pixels'>,
): Promise<Decoded> {
  const header = await reader.readExactly(13);
  const isProblem = header.readUInt8(0) === 0;
  const length = header.readUInt32BE(9);
  if (length > (isProblem ? MAX_PROBLEM_BYTES : maxPictureBytes(request)))
    throw new Error('the answer is too long');
  const bytes = await reader.readExactly(length);
  if (isProblem) return { problem: bytes.toString('utf8') };
  return { width: header.readUInt32BE(1), height: header.readUInt32BE(5), bytes };
}

const maxPictureBytes = ({ format, pixels }: Pick<DecodeRequest, 'format' | 'pixels'>) =>
  format === 'none' ? 0 : MAX_PIXEL_BYTES * pixels + MAX_OTHER_BYTES;
