import type { ByteReader } from '../remote-files/byte-reader.ts';

/**
 * What the decoding child is asked and answers on its pipes.
 * Request: the wanted picture (1 byte), the frame's length (32 bits), the frame.
 * Answer: 1 for a picture or 0 for a problem, width, height and length (32 bits each), the picture's
 * bytes or the problem's words.
 */
const WANTED = ['raw', 'png', 'jpeg'] as const;
/** `raw` is RGB of 8 bits without padding. */
export type Wanted = (typeof WANTED)[number];

export type Decoded = { width: number; height: number; bytes: Buffer } | { problem: string };

export function writeRequest(wanted: Wanted, frame: Buffer): Buffer[] {
  const header = Buffer.alloc(5);
  header.writeUInt8(WANTED.indexOf(wanted), 0);
  header.writeUInt32BE(frame.length, 1);
  return [header, frame];
}

export async function readRequest(reader: ByteReader): Promise<{ wanted: Wanted; frame: Buffer }> {
  const header = await reader.readExactly(5);
  const wanted = WANTED[header.readUInt8(0)];
  if (!wanted) throw new Error('an unknown request');
  return { wanted, frame: await reader.readExactly(header.readUInt32BE(1)) };
}

export function writeAnswer(decoded: Decoded): Buffer[] {
  const header = Buffer.alloc(13);
  if ('problem' in decoded) {
    const words = Buffer.from(decoded.problem);
    header.writeUInt32BE(words.length, 9);
    return [header, words];
  }
  header.writeUInt8(1, 0);
  header.writeUInt32BE(decoded.width, 1);
  header.writeUInt32BE(decoded.height, 5);
  header.writeUInt32BE(decoded.bytes.length, 9);
  return [header, decoded.bytes];
}

export async function readAnswer(reader: ByteReader): Promise<Decoded> {
  const header = await reader.readExactly(13);
  const bytes = await reader.readExactly(header.readUInt32BE(9));
  if (header.readUInt8(0) === 0) return { problem: bytes.toString('utf8') };
  return { width: header.readUInt32BE(1), height: header.readUInt32BE(5), bytes };
}
