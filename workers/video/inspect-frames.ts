import type { Readable } from 'node:stream';
import type { JobContext } from '../context.ts';
import { withSession } from '../ssh/reconnect.ts';
import type { RemoteSession } from '../ssh/remote-session.ts';
import { checkFrames } from './check-frames.ts';
import type { Pictures } from './ffmpeg-arguments.ts';
import { FrameCheck } from './frame-check.ts';
import type { FrameKind } from './frames.ts';
import { TRANSFER_COMMAND } from './transfer.ts';

type VideoContext = JobContext<'video'>;

/** Runs a transfer script on the host; gives its standard output. */
export async function openTransfer(
  session: RemoteSession,
  script: string,
  signal: AbortSignal,
): Promise<Readable> {
  const channel = await session.exec(TRANSFER_COMMAND, signal);
  channel.stdin.end(script);
  return channel.stdout;
}

/** What the first frame is, when ffmpeg takes such frames as they are; undefined when they must be decoded. */
export async function inspectFirstFrame(
  context: VideoContext,
): Promise<(Pictures & { kind: FrameKind }) | undefined> {
  const { first } = await inspectFrames(context, context.payload.images.slice(0, 1));
  return first && first.kind !== 'other' ? first : undefined;
}

/** Looks at the heads of these frames, all of them, whatever is found. */
export async function inspectFrames(
  context: VideoContext,
  images: readonly string[],
): Promise<FrameCheck> {
  const { signal } = context;
  return withSession(context, async session => {
    const check = new FrameCheck({ mixed: true });
    const open = (script: string) => openTransfer(session, script, signal);
    await checkFrames({ images, check, open, signal });
    return check;
  });
}
