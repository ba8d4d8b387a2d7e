import { type FrameInfo, type FrameKind, isLarge } from './frame-info.ts';

const KIND_NAMES: Record<FrameKind, string> = {
  png: 'PNG',
  jpeg: 'JPEG',
  bmp: 'BMP',
  pnm: 'PPM or PGM',
  exr: 'EXR',
};

const nameOf = (info: FrameInfo) =>
  info.kind === 'other' ? info.format.toUpperCase() : KIND_NAMES[info.kind];

/** Why ffmpeg cannot read the frame in one go with the first one. Sentences that begin with its path. */
export function describeDifference(info: FrameInfo, first: FrameInfo): string {
  if (info.kind !== first.kind || info.kind === 'other' || first.kind === 'other')
    return `is of another kind: ${nameOf(info)}, the first is ${nameOf(first)}`;
  if (info.alpha && !first.alpha) return 'may be transparent, the first is not';
  return 'has a palette, the first has none';
}

/** Why a host cannot take the frame, whatever the others are; undefined where it can. */
export function describeUnfit(info: FrameInfo): string | undefined {
  if (info.kind === 'other' && info.format === 'jpeg')
    return 'is a JPEG of CMYK colours or another unusual form';
  if (info.kind !== 'png' && info.kind !== 'jpeg')
    return `is ${nameOf(info)}, and a host takes JPEG and PNG`;
  // Blending them takes ffmpeg more memory than it may have.
  if (info.alpha && isLarge(info)) return 'may be transparent, with more than 4096×4096 pixels';
  return undefined;
}
