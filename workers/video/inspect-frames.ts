import type { JobContext } from '../context.ts';
import { withSession } from '../ssh/reconnect.ts';
import type { Pictures } from './ffmpeg-arguments.ts';
import type { FrameKind } from './frame-header.ts';
import { openFrameStream } from './frame-stream.ts';
import { FrameValidator } from './frame-validator.ts';
import { validateFrames } from './validate-frames.ts';

type VideoContext = JobContext<'video'>;

/** Kind and size of the first frame; undefined if it must be decoded. */
export async function inspectFirstFrame(
  context: VideoContext,
): Promise<(Pictures & { kind: FrameKind }) | undefined> {
  const { first } = await inspectFrames(context, context.payload.images.slice(0, 1));
  return first && first.kind !== 'other' ? first : undefined;
}

/** Validates all these frames on the host by their first bytes. */
export async function inspectFrames(
  context: VideoContext,
  images: readonly string[],
): Promise<FrameValidator> {
  const { signal } = context;
  return withSession(context, async session => {
    const validator = new FrameValidator({ mixed: true });
    const open = (script: string) => openFrameStream(session, script, signal);
    await validateFrames({ images, validator, open, signal });
    return validator;
  });
}
