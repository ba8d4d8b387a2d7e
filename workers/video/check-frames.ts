import type { Readable } from 'node:stream';
import type { FrameCheck } from './frame-check.ts';
import { HEAD_BYTES, inspectFrame } from './frames.ts';
import { readFrames } from './read-frames.ts';
import { transferScript } from './transfer.ts';

/** Enough for every PNG and for JPEGs without long metadata: 10,000 frames are checked with 20 MB. */
const SHORT_HEAD_BYTES = 2048;

export interface CheckFramesOptions {
  images: readonly string[];
  check: FrameCheck;
  /** Runs the script on the host (by TRANSFER_COMMAND) and gives its standard output. */
  open(script: string): Promise<Readable>;
  signal?: AbortSignal;
}

/**
 * Looks at the first bytes of every frame and notes in `check` what is wrong with them; those whose
 * size comes late in the file are looked at once more. Throws only when the frames cannot be looked
 * at: `remote_connection_failed`, or what `open` throws.
 */
export async function checkFrames({ images, check, open, signal }: CheckFramesOptions): Promise<void> {
  const unsettled: string[] = [];
  const look = async (paths: readonly string[], headBytes: number) => {
    const stdout = await open(transferScript({ images: paths, headBytes }));
    for await (const frame of readFrames(stdout, { images: paths, signal })) {
      const facts = 'problem' in frame ? frame : inspectFrame(frame.bytes);
      if ('more' in facts && frame.size === headBytes && headBytes < HEAD_BYTES) unsettled.push(frame.path);
      else check.add(frame.path, facts);
    }
  };
  // The first frame is what the others are compared with: it is settled before them.
  await look(images.slice(0, 1), HEAD_BYTES);
  if (images.length > 1) await look(images.slice(1), SHORT_HEAD_BYTES);
  const late = unsettled.splice(0);
  if (late.length > 0) await look(late, HEAD_BYTES);
}
