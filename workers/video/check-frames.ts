import type { Readable } from 'node:stream';
import type { FrameCheck } from './frame-check.ts';
import { inspectFrame } from './frames.ts';
import { readFrames } from './read-frames.ts';
import { transferScript } from './transfer.ts';

/** Enough for every PNG and for JPEGs without long metadata: 10,000 frames are checked with 20 MB. */
const SHORT_HEAD_BYTES = 2048;
/** For JPEGs whose profiles and thumbnails come before their size. */
const LONG_HEAD_BYTES = 2 ** 22;

export interface CheckFramesOptions {
  images: readonly string[];
  check: FrameCheck;
  /** Runs the script on the host (by TRANSFER_COMMAND) and gives its standard output. */
  open(script: string): Promise<Readable>;
  signal?: AbortSignal;
}

/**
 * Looks at the first bytes of every frame and notes in `check` what is wrong with them; those whose
 * size comes late in the file are looked at once more. May be called for some of the frames and then,
 * with the same `check`, for the rest. Throws only when the frames cannot be looked at:
 * `remote_connection_failed`, or what `open` throws.
 */
export async function checkFrames(options: CheckFramesOptions): Promise<void> {
  const { images, check } = options;
  // The first frame is what the others are compared with: it is settled before them.
  const alone = check.first ? 0 : 1;
  await lookTwice(images.slice(0, alone), options);
  await lookTwice(images.slice(alone), options);
}

async function lookTwice(images: readonly string[], options: CheckFramesOptions): Promise<void> {
  const late = await look(images, SHORT_HEAD_BYTES, options);
  await look(late, LONG_HEAD_BYTES, options);
}

/** Notes what the heads of the frames tell, and gives the paths of those that tell too little. */
async function look(
  images: readonly string[],
  headBytes: number,
  { check, open, signal }: CheckFramesOptions,
): Promise<string[]> {
  if (images.length === 0) return [];
  const stdout = await open(transferScript({ images, headBytes }));
  const late: string[] = [];
  for await (const frame of readFrames(stdout, { images, signal })) {
    const facts = 'problem' in frame ? frame : inspectFrame(frame.bytes);
    const isCut = 'size' in frame && frame.size === headBytes && headBytes < LONG_HEAD_BYTES;
    if ('more' in facts && isCut) late.push(frame.path);
    else check.add(frame.path, facts);
  }
  return late;
}
