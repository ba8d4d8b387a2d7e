import type { JobContext } from '../context.ts';
import { withSession } from '../ssh/reconnect.ts';
import { decodeAhead } from './decode-ahead.ts';
import { DecoderPool, picturesAtOnce } from './decoder-pool.ts';
import type { Pictures } from './frame-info.ts';
import { frameStreamScript, openFrameStream } from './frame-stream.ts';
import { type Frame, FrameValidator, isDecoded } from './frame-validator.ts';
import type { HostKind } from './host-encode-script.ts';
import { judgeFrame, type KnownFrame, readInfo } from './normalize-frames.ts';
import { type FrameFailure, type ReadFrame, readFrames } from './read-frames.ts';
import { validateFrames } from './validate-frames.ts';

type VideoContext = JobContext<'video'>;

/** Why a worker must encode: the path of a frame, and what is said of it. */
export interface NeedsWorker {
  needsWorker: string;
}

/** The first frame's kind and size, or why a worker must read it. Throws `bad_frames` if it is unusable. */
export async function inspectFirstFrame(
  context: VideoContext,
  frames: readonly Frame[],
): Promise<(Pictures & { kind: HostKind }) | NeedsWorker> {
  const validator = await inspectFrames(context, frames.slice(0, 1));
  validator.assertUsable();
  const { first, needsWorker } = validator;
  if (needsWorker !== undefined) return { needsWorker };
  if (first?.kind === 'png' || first?.kind === 'jpeg') return { ...first, kind: first.kind };
  throw new Error('a frame of no kind');
}

const newValidator = ({ worker, payload }: VideoContext) =>
  new FrameValidator(worker.config.LIMIT_FRAME_PIXELS, payload.onBadFrame);

/** Validates all these frames on the host by their first bytes. */
export function inspectFrames(
  context: VideoContext,
  frames: readonly Frame[],
): Promise<FrameValidator> {
  const { signal } = context;
  return withSession(context, async session => {
    const validator = newValidator(context);
    const open = (script: string) => openFrameStream(session, script, signal);
    await validateFrames({ frames, validator, open, signal });
    return validator;
  });
}

/** Reads and decodes all these frames, so that every unusable one is named, whichever place encodes. */
export function examineFrames(
  context: VideoContext,
  frames: readonly Frame[],
): Promise<FrameValidator> {
  const { signal } = context;
  return withSession(context, async session => {
    const validator = newValidator(context);
    const decoders = new DecoderPool();
    const begin = (frame: ReadFrame | FrameFailure): KnownFrame => {
      const known = readInfo(frame);
      const { info, damage } = known;
      if ('problem' in info || 'problem' in frame || damage || !isDecoded(info)) return known;
      return { ...known, decoding: decoders.decode(frame.bytes, 'none', validator.size) };
    };
    const close = () => decoders.close();
    signal.addEventListener('abort', close, { once: true });
    try {
      const stdout = await openFrameStream(session, frameStreamScript({ frames }), signal);
      const read = readFrames(stdout, { frames, signal });
      for await (const known of decodeAhead(read, begin, () => picturesAtOnce(validator.size))) {
        const info = judgeFrame(known, validator);
        context.progress(0, `checking frames: ${validator.checked} of ${frames.length}`);
        const decoded = info && (await known.decoding);
        if (!decoded) continue;
        if ('problem' in decoded) validator.addProblem(known.frame, decoded.problem);
        else validator.addSize(known.frame, decoded);
      }
      return validator;
    } finally {
      signal.removeEventListener('abort', close);
      close();
    }
  });
}
