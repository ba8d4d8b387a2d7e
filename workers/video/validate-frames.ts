import type { Readable } from 'node:stream';
import { parseFrameHeader } from './frame-header.ts';
import { frameStreamScript } from './frame-stream.ts';
import type { FrameValidator } from './frame-validator.ts';
import { readFrames } from './read-frames.ts';

/** Enough for every PNG and for JPEGs without long metadata: 20 MB for 10,000 frames. */
const SHORT_HEAD_BYTES = 2048;
/** For JPEGs whose profiles and thumbnails precede the size. */
const LONG_HEAD_BYTES = 2 ** 22;

export interface ValidateFramesOptions {
  images: readonly string[];
  validator: FrameValidator;
  /** Runs the script on the host (by FRAME_STREAM_COMMAND) and returns its standard output. */
  open(script: string): Promise<Readable>;
  signal?: AbortSignal;
}

/**
 * Reads the first bytes of every frame, and adds the frames to the validator. Frames whose size comes late in the file are
 * read a second time. Can be called for some of the frames and then, with the same validator, for the rest. Throws
 * `remote_connection_failed`, or what `open` throws, but not for bad frames.
 */
export async function validateFrames(options: ValidateFramesOptions): Promise<void> {
  const { images, validator } = options;
  // The others are compared with the first frame, so its header is read first.
  const alone = validator.first ? 0 : 1;
  await readTwice(images.slice(0, alone), options);
  await readTwice(images.slice(alone), options);
}

async function readTwice(images: readonly string[], options: ValidateFramesOptions): Promise<void> {
  const late = await readHeaders(images, SHORT_HEAD_BYTES, options);
  await readHeaders(late, LONG_HEAD_BYTES, options);
}

/** Validates the frames by their heads; returns the paths of those whose head is too short. */
async function readHeaders(
  images: readonly string[],
  headBytes: number,
  { validator, open, signal }: ValidateFramesOptions,
): Promise<string[]> {
  if (images.length === 0) return [];
  const stdout = await open(frameStreamScript({ images, headBytes }));
  const late: string[] = [];
  for await (const frame of readFrames(stdout, { images, signal })) {
    const info = 'problem' in frame ? frame : parseFrameHeader(frame.bytes);
    const isCut = 'size' in frame && frame.size === headBytes && headBytes < LONG_HEAD_BYTES;
    if ('more' in info && isCut) late.push(frame.path);
    else validator.add(frame.path, info);
  }
  return late;
}
