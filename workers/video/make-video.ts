import { WindlassError } from '../../shared/errors/errors.ts';
import type { JobContext } from '../context.ts';
import { followLater, isRunUnreachable, RunLost } from '../runs/run-errors.ts';
import { type ChosenFrames, chooseFrames } from './choose-frames.ts';
import { encodeInWorker } from './encode-in-worker.ts';
import { encodeOnHost, findHostEncoder } from './encode-on-host.ts';
import { nameEncoders } from './ffmpeg-arguments.ts';
import type { Frame } from './frame-validator.ts';
import { examineFrames, inspectFirstFrame } from './inspect-frames.ts';
import { limitInspection } from './limit-inspection.ts';
import type { StoredVideo } from './store-video.ts';
import { isForFrames, lostOnHost, wasKilled } from './video-error.ts';

type VideoContext = JobContext<'video'>;

interface MadeVideo extends StoredVideo, Omit<ChosenFrames, 'frames'> {
  frames: number;
  encoded: 'host' | 'worker';
}

/**
 * Makes a video and stores it under the key `object`: on the host if its ffmpeg can and all frames are of one kind,
 * else in this worker, as where the host has lost it. If frames cause a failure, all are decoded, so that `bad_frames`
 * names each broken one. Frames that may be left out are found first.
 */
export async function makeVideo(context: VideoContext, object: string): Promise<MadeVideo> {
  context.progress(0, 'checking frames');
  const { frames, ...skipped } = await limitInspection(context, chooseFrames);
  return { ...(await encode(context, { object, frames })), ...skipped };
}

interface Frames {
  object: string;
  frames: readonly Frame[];
}

/** What is stored, or undefined where this way does not take the frames. */
type Way = () => Promise<(StoredVideo & Pick<MadeVideo, 'encoded'>) | undefined>;

/** Tries one way after the other: an ffmpeg may be too old for frames that another program decodes. */
async function encode(context: VideoContext, video: Frames): Promise<MadeVideo> {
  const { encode: place } = context.payload;
  const inWorker = async (decodeAll: boolean) =>
    ({ ...(await encodeInWorker(context, { ...video, decodeAll })), encoded: 'worker' }) as const;
  const ways: Way[] = [
    ...(place === 'worker' ? [] : [() => followOnHost(context, video)]),
    ...(place === 'host' ? [] : [() => inWorker(false), () => inWorker(true)]),
  ];
  let isExamined = false;
  let failure: unknown;
  for (const way of ways) {
    try {
      const made = await way();
      if (made) return { ...made, frames: video.frames.length };
    } catch (error) {
      if (context.signal.aborted || !(isForFrames(error) || wasKilled(error))) throw error;
      failure ??= error;
      if (isForFrames(error) && !isExamined) {
        (await examine(context, video)).assertUsable(error.extra);
        isExamined = true;
      }
      context.log.info({ err: error }, 'encoding failed, as far as known not for the frames');
    }
  }
  throw failure;
}

const examine = (context: VideoContext, { frames }: Frames) =>
  limitInspection(context, limited => examineFrames(limited, frames));

/** A host that is unreachable while it encodes, or has encoded, is waited for. */
async function followOnHost(context: VideoContext, video: Frames): ReturnType<Way> {
  const found = context.job.unreachableSince;
  try {
    return await onHost(context, video);
  } catch (error) {
    if (error instanceof RunLost) {
      if (context.payload.encode === 'host') throw lostOnHost(error);
      context.log.info({ err: error }, 'the host lost the encoder; a worker encodes the video');
      return undefined;
    }
    throw isRunUnreachable(context, error) ? followLater(context, error, found) : error;
  }
}

async function onHost(context: VideoContext, video: Frames): ReturnType<Way> {
  const [first, encoder] = await limitInspection(context, limited =>
    Promise.all([inspectFirstFrame(limited, video.frames), findHostEncoder(limited)]),
  );
  const made =
    'needsWorker' in first
      ? first
      : encoder && (await encodeOnHost(context, { ...video, pictures: first, ...encoder }));
  if (made && !('needsWorker' in made)) return { ...made, encoded: 'host' };
  if (context.payload.encode !== 'host') return undefined;
  throw new WindlassError('video_failed', {
    detail: made
      ? `the host does not encode these frames: ${made.needsWorker}.`
      : `the host has no ffmpeg with ${nameEncoders(context.payload)}.`,
    hint: made
      ? 'Leave "encode" out.'
      : 'Leave "encode" out, or install an ffmpeg with the encoder on the host.',
  });
}
