import type { JobContext } from '../context.ts';
import { withSession } from '../ssh/reconnect.ts';
import { Decoder } from './decoder.ts';
import { isLarge, type Pictures } from './frame-info.ts';
import { frameStreamScript, openFrameStream } from './frame-stream.ts';
import { FrameValidator, type Place } from './frame-validator.ts';
import type { HostKind } from './host-encode-script.ts';
import { checkFrame } from './normalize-frames.ts';
import { readFrames } from './read-frames.ts';
import { validateFrames } from './validate-frames.ts';

type VideoContext = JobContext<'video'>;

/** Kind and size of the first frame; undefined if a worker must read it. */
export async function inspectFirstFrame(
  context: VideoContext,
  frames: readonly Place[],
): Promise<(Pictures & { kind: HostKind }) | undefined> {
  const { first } = await inspectFrames(context, frames.slice(0, 1));
  if (first?.kind !== 'png' && first?.kind !== 'jpeg') return undefined;
  if (first.alpha && isLarge(first)) return undefined;
  return { ...first, kind: first.kind };
}

/** Validates all these frames on the host by their first bytes. */
export function inspectFrames(
  context: VideoContext,
  frames: readonly Place[],
): Promise<FrameValidator> {
  const { signal } = context;
  return withSession(context, async session => {
    const validator = new FrameValidator();
    const open = (script: string) => openFrameStream(session, script, signal);
    await validateFrames({ frames, validator, open, signal });
    return validator;
  });
}

/** Reads and decodes all these frames, whatever place encodes them, so that each one that cannot be used is named. */
export function examineFrames(
  context: VideoContext,
  frames: readonly Place[],
): Promise<FrameValidator> {
  const { signal } = context;
  return withSession(context, async session => {
    const validator = new FrameValidator();
    const decoder = new Decoder();
    const close = () => decoder.close();
    signal.addEventListener('abort', close, { once: true });
    try {
      const stdout = await openFrameStream(session, frameStreamScript({ frames }), signal);
      for await (const frame of readFrames(stdout, { frames, signal })) {
        const info = checkFrame(frame, validator);
        context.progress(0, `checking frames: ${validator.checked} of ${frames.length}`);
        if (!info || 'problem' in frame || !['png', 'jpeg', 'other'].includes(info.kind)) continue;
        const decoded = await decoder.decode(frame.bytes, 'none');
        if ('problem' in decoded) validator.addProblem(frame, decoded.problem);
        else validator.addSize(frame, decoded);
      }
      return validator;
    } finally {
      signal.removeEventListener('abort', close);
      close();
    }
  });
}
