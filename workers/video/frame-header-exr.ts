import { isLarge, type ParsedHeader, type Size } from './frame-info.ts';

const CUT = { problem: 'is cut short', more: true } as const;

/** Deep pictures and those in several parts have no single plane of colours. */
const EXR_UNUSUAL = 0x1800;

/** OpenEXR: attributes of name, type, length and value, up to an empty name. */
export function parseExr(head: Buffer): ParsedHeader {
  if (head.length < 9) return CUT;
  if (head.readUInt32LE(4) & EXR_UNUSUAL)
    return { problem: 'is an EXR image of several parts, or a deep one, which are not taken' };
  let size: Size | undefined;
  let channels: string[] = [];
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
    if (name === 'channels') channels = readChannels(head.subarray(value, at));
  }
  if (!size) return { problem: 'is a broken EXR image' };
  if (!hasColours(channels))
    return { problem: `has the channels ${nameSome(channels)}, and not R, G and B, or Y` };
  // Any may have an alpha channel. Large ones are not blended, for the memory.
  return { kind: 'exr', ...size, ...(!isLarge(size) && { alpha: true }) };
}

/** The names of the channels: each is followed by 16 bytes of its own, and the last one by an empty name. */
function readChannels(list: Buffer): string[] {
  const names: string[] = [];
  for (let at = 0; at < list.length && names.length < MAX_CHANNELS; ) {
    const name = readText(list, at);
    if (!name) break;
    names.push(name);
    at += name.length + 17;
  }
  return names;
}

/** What ffmpeg shows: colours or grey of no layer. Of RY and BY, which are colours beside a grey, it reads none. */
const hasColours = (channels: string[]) =>
  ['R', 'G', 'B'].every(name => channels.includes(name)) ||
  (channels.includes('Y') && !channels.includes('RY'));

const MAX_CHANNELS = 1_000;
const MAX_NAMED = 6;

const nameSome = (channels: string[]) =>
  `${channels.slice(0, MAX_NAMED).join(', ')}${channels.length > MAX_NAMED ? ' …' : ''}`;

/** The text that ends with a NUL, or the one after it. */
function readText(head: Buffer, from: number, skip = 0): string | undefined {
  const end = head.indexOf(0, from);
  if (end < 0) return undefined;
  return skip > 0 ? readText(head, end + 1, skip - 1) : head.toString('latin1', from, end);
}
