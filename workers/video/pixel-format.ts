import { isFrameHeader, isStandalone } from './frame-header-jpeg.ts';

/**
 * How a picture's pixels are stored, as far as its first bytes tell. When that changes within a video ffmpeg rebuilds
 * its filters, and those that collect pictures or wait for another stream lose them.
 */
export function pixelFormatOf(head: Buffer): string {
  const type = head.toString('latin1', 0, 2);
  if (head[0] === 0x89) return `${head[24]} ${head[25]} ${isTransparent(head)}`;
  if (head[0] === 0xff) return jpegFormat(head);
  if (type === 'BM' && head.length >= 30) return String(head.readUInt16LE(28));
  if (!/^P[2356]/.test(type)) return '';
  const text = head.toString('latin1', 0, 4096).replace(/#[^\r\n]*/g, '');
  const most = Number(/^P\d\s+\d+\s+\d+\s+(\d+)/.exec(text)?.[1]);
  return `${/[36]/.test(type) ? 'colours' : 'grey'} ${most > 255 ? 16 : 8}`;
}

function isTransparent(head: Buffer): boolean {
  const data = head.indexOf('IDAT');
  return head.subarray(33, data === -1 ? undefined : data).includes('tRNS');
}

/** The sampling factors of its components. */
function jpegFormat(head: Buffer): string {
  for (let at = 2; at + 9 < head.length && head[at] === 0xff; ) {
    const marker = head[at + 1] ?? 0;
    if (marker === 0xff) at++;
    else if (isFrameHeader(marker)) {
      const components = Array.from({ length: head[at + 9] ?? 0 }, (_, n) => head[at + 11 + 3 * n]);
      return components.join(' ');
    } else at += isStandalone(marker) ? 2 : 2 + head.readUInt16BE(at + 2);
  }
  return '';
}
