import type { FrameKind, Size } from './frame-info.ts';

/**
 * Frames as packets of an AVI file (Microsoft's RIFF, without an index), so that ffmpeg decodes each alone: its end
 * does not depend on its content, and kinds without a parser in ffmpeg work.
 */
export function packetHeader({ width, height }: Size, fps: number, labels?: Size): Buffer {
  const main = Buffer.alloc(56);
  // Microseconds a frame, the number of streams, the size of the first.
  main.writeUInt32LE(Math.min(2 ** 32 - 1, Math.round(1e6 / fps)), 0);
  main.writeUInt32LE(labels ? 2 : 1, 24);
  main.writeUInt32LE(width, 32);
  main.writeUInt32LE(height, 36);
  const headers = list(
    'hdrl',
    chunk('avih', main),
    streamHeader({ width, height }, { fps, name: 'WLSS', bits: 24 }),
    ...(labels ? [streamHeader(labels, { fps, name: 'Y800', bits: 8 })] : []),
  );
  // Lengths of 0: as long as the stream.
  return Buffer.concat([
    Buffer.from('RIFF\0\0\0\0AVI ', 'latin1'),
    headers,
    Buffer.from('LIST\0\0\0\0movi', 'latin1'),
  ]);
}

function streamHeader(
  { width, height }: Size,
  { fps, name, bits }: { fps: number; name: string; bits: number },
): Buffer {
  const stream = Buffer.alloc(56);
  stream.write('vids', 0);
  // The rate in millionths: encoders take at most 10⁹ parts of a second, and rates are up to 120.
  stream.writeUInt32LE(1e6, 20);
  stream.writeUInt32LE(Math.round(fps * 1e6), 24);
  const format = Buffer.alloc(40);
  format.writeUInt32LE(40, 0);
  format.writeInt32LE(width, 4);
  format.writeInt32LE(height, 8);
  format.writeUInt16LE(1, 12);
  format.writeUInt16LE(bits, 14);
  format.write(name, 16);
  return list('strl', chunk('strh', stream), chunk('strf', format));
}

/** The pieces of a packet of a frame, or of its label in the second stream, padded to even length. */
export function packetOf(frame: Buffer, stream: 0 | 1 = 0): Buffer[] {
  const header = Buffer.alloc(8);
  header.write(`0${stream}dc`);
  header.writeUInt32LE(frame.length, 4);
  return frame.length % 2 === 0 ? [header, frame] : [header, frame, Buffer.alloc(1)];
}

/** ffmpeg's decoders. That of PPM reads PGM too. */
export const DECODERS: Record<FrameKind, string> = {
  png: 'png',
  jpeg: 'mjpeg',
  bmp: 'bmp',
  pnm: 'ppm',
  exr: 'exr',
};

function chunk(name: string, data: Buffer): Buffer {
  const header = Buffer.alloc(8);
  header.write(name, 0, 'latin1');
  header.writeUInt32LE(data.length, 4);
  return Buffer.concat([header, data]);
}

const list = (type: string, ...parts: Buffer[]) =>
  chunk('LIST', Buffer.concat([Buffer.from(type), ...parts]));
