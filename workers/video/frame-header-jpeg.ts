import type { FrameInfo, ParsedHeader } from './frame-info.ts';

/** Walks the marker segments up to the frame header (SOF). */
export function parseJpeg(head: Buffer): ParsedHeader {
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

export function isStandalone(marker: number): boolean {
  return marker === 0x01 || (marker >= 0xd0 && marker <= 0xd8);
}

/** SOF0…SOF15, without DHT (C4), JPG (C8) and DAC (CC) among them. */
export function isFrameHeader(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
}

/** ffmpeg reads baseline, extended and progressive pictures of 8 bits with Huffman codes. */
function readFrameHeader(marker: number, header: Buffer): FrameInfo {
  const [precision, components] = [header[2], header[7]];
  const isPlain = marker <= 0xc2 && precision === 8 && (components === 1 || components === 3);
  if (!isPlain) return { kind: 'other', format: 'jpeg' };
  return { kind: 'jpeg', width: header.readUInt16BE(5), height: header.readUInt16BE(3) };
}
