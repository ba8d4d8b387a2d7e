import type { Readable } from 'node:stream';
import { parseFrameHeader } from './frame-header.ts';
import { frameHeadsScript, type Head, readHeads } from './frame-heads.ts';
import type { ParsedHeader } from './frame-info.ts';
import { frameStreamScript } from './frame-stream.ts';
import type { Frame, FrameValidator } from './frame-validator.ts';
import { pixelFormatOf } from './pixel-format.ts';
import { readFrames } from './read-frames.ts';

/** Bytes of a frame that are read first, enough without long metadata: 20 MB for 10,000 frames. */
const SHORT_HEAD_BYTES = 2048;
/** Bytes of a JPEG or PNG whose profiles and thumbnails precede what is read of it. */
const LONG_HEAD_BYTES = 2 ** 22;

interface ValidateFramesOptions {
  frames: readonly Frame[];
  validator: FrameValidator;
  /** Runs the script on the host (by FRAME_STREAM_COMMAND) and returns its standard output. */
  open(script: string): Promise<Readable>;
  signal?: AbortSignal;
}

/**
 * Reads the first bytes of every frame and adds the frames to the validator; reads more if the size comes late. May be
 * called for some frames and then, with the same validator, for the rest. Throws `remote_connection_failed` or the
 * errors of `open`, but not for bad frames.
 */
export async function validateFrames(options: ValidateFramesOptions): Promise<void> {
  const { frames, validator } = options;
  // The others are compared with the first frame, so its header is read first.
  const alone = validator.first ? 0 : 1;
  await readTwice(frames.slice(0, alone), options);
  await readTwice(frames.slice(alone), options);
}

async function readTwice(frames: readonly Frame[], options: ValidateFramesOptions): Promise<void> {
  const late = await readHeaders(frames, SHORT_HEAD_BYTES, options);
  await readHeaders(late, LONG_HEAD_BYTES, options);
}

/** Validates the frames by their heads; returns those whose head is too short. */
async function readHeaders(
  frames: readonly Frame[],
  headBytes: number,
  { validator, open, signal }: ValidateFramesOptions,
): Promise<Frame[]> {
  if (frames.length === 0) return [];
  const stdout = await open(frameHeadsScript(frames, headBytes));
  const read =
    (await readHeads(stdout, frames, { headBytes, parse, signal })) ??
    (await readEach(frames, headBytes, { open, signal }));
  return frames.filter((frame, i) => {
    const { info, pixels, isCut } = read[i] ?? parse({ problem: 'cannot be read' });
    if ('more' in info && isCut && headBytes < LONG_HEAD_BYTES) return true;
    if (validator.add(frame, info) && pixels !== undefined) validator.notePixels(pixels);
    return false;
  });
}

/** What is kept of a head: long heads of all frames would not fit into memory. */
interface Parsed {
  info: ParsedHeader;
  pixels?: string;
  isCut: boolean;
}

function parse(head: Head): Parsed {
  if ('problem' in head) return { info: head, isCut: false };
  const info = parseFrameHeader(head.bytes);
  if ('problem' in info) return { info, isCut: head.isCut };
  return { info, pixels: pixelFormatOf(head.bytes), isCut: head.isCut };
}

/** Validates the frames with one fork per frame, which is slower and expects less of the host. */
async function readEach(
  frames: readonly Frame[],
  headBytes: number,
  { open, signal }: Pick<ValidateFramesOptions, 'open' | 'signal'>,
): Promise<Parsed[]> {
  const stdout = await open(frameStreamScript({ frames, headBytes }));
  const read: Parsed[] = [];
  for await (const frame of readFrames(stdout, { frames, signal }))
    read.push(parse('problem' in frame ? frame : { ...frame, isCut: frame.size === headBytes }));
  return read;
}
