import { isFrameHeader, isStandalone } from './frame-header-jpeg.ts';

/**
 * How a picture's pixels are stored, as far as its first bytes tell. When that changes within a video ffmpeg rebuilds
 * its filters, and those that collect pictures or wait for another stream lose them.
 */
export function pixelFormatOf(head: Buffer): string {
  const type = head.toString('latin1', 0, 2);
  if (head[0] === 0x89) return `${head[24]} ${head[25]} ${isTransparent(head)}`;
  if (head[0] === 0xff) return jpegFormat(head);
  if (type === 'BM' && head.length >= 34) return bitmapFormat(head);
  if (head[0] === 0x76) return exrFormat(head);
  if (!/^P[2356]/.test(type)) return '';
  const text = head.toString('latin1', 0, 4096).replace(/#[^\r\n]*/g, '');
  const most = Number(/^P\d\s+\d+\s+\d+\s+(\d+)/.exec(text)?.[1]);
  return `${/[36]/.test(type) ? 'colours' : 'grey'} ${most > 255 ? 16 : 8}`;
}

function isTransparent(head: Buffer): boolean {
  const data = head.indexOf('IDAT');
  return head.subarray(33, data === -1 ? undefined : data).includes('tRNS');
}

const BITFIELDS = 3;

/** Its bits, and the masks of its channels if it has such. Without a longer header that of alpha is missing. */
function bitmapFormat(head: Buffer): string {
  const masks = head.subarray(54, head.readUInt32LE(14) >= 56 ? 70 : 66).toString('hex');
  const compression = head.readUInt32LE(30);
  return `${head.readUInt16LE(28)} ${compression === BITFIELDS ? masks : ''}`;
}

const CHANNELS = 'channels\0chlist\0';

/** Names and types of its channels. */
function exrFormat(head: Buffer): string {
  const at = head.indexOf(CHANNELS) + CHANNELS.length;
  if (at < CHANNELS.length || at + 4 > head.length) return '';
  return head.toString('latin1', at + 4, at + 4 + head.readUInt32LE(at));
}

/** Adobe's marker, whose byte says whether three components are RGB. */
const APP14 = 0xee;

/** Names and sampling factors of its components, and what Adobe's marker says of their colours. */
function jpegFormat(head: Buffer): string {
  let transform: number | undefined;
  for (let at = 2; at + 9 < head.length && head[at] === 0xff; ) {
    const marker = head[at + 1] ?? 0;
    if (marker === APP14) transform = head[at + 15];
    if (marker === 0xff) at++;
    else if (isFrameHeader(marker)) {
      const components = head.subarray(at + 10, at + 10 + 3 * (head[at + 9] ?? 0));
      const named = components.filter((_, i) => i % 3 < 2).join(' ');
      return `${named} ${transform ?? ''}`;
    } else at += isStandalone(marker) ? 2 : 2 + head.readUInt16BE(at + 2);
  }
  return '';
}
