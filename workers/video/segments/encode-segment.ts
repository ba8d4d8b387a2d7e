import type { Payload } from '../../../shared/jobs/catalog.ts';
import type { RemoteExec } from '../../host-agent/exec-channel.ts';
import { type EncodedVideo, encodeVideo } from '../encode-video.ts';
import type { Size } from '../frame-info.ts';
import { type Labels, planLabels } from '../frame-labels.ts';
import { frameStreamScript, openFrameStream } from '../frame-stream.ts';
import type { Frame } from '../frame-validator.ts';
import { readFrames } from '../read-frames.ts';
import type { VideoLimits } from '../video-limits.ts';
import type { Segment } from './segment.ts';

interface SegmentOptions {
  session: RemoteExec;
  payload: Payload<'video'>;
  /** The frames of the whole video. */
  frames: readonly Frame[];
  segment: Segment;
  outputPath: string;
  stillPaths?: { poster: string; sprite: string };
  limits: VideoLimits;
  decodeAll?: boolean;
  onProgress?(): void;
  /** Called with the size of the video before anything is encoded. */
  onSize?(size: Size): void;
  signal: AbortSignal;
}

/**
 * Encodes a segment to fit the whole video: the video's first frame determines how pictures are made, and labels are as
 * long as the longest of all.
 */
export async function encodeSegment(options: SegmentOptions): Promise<EncodedVideo> {
  const { session, payload, frames, segment, onProgress, ...rest } = options;
  const { start, until } = segment;
  const before = start > 0 ? 1 : 0;
  const read = before
    ? [...frames.slice(0, 1), ...frames.slice(start, until)]
    : frames.slice(0, until);
  const signal = AbortSignal.any([rest.signal, segment.revoked]);
  const stdout = await openFrameStream(session, frameStreamScript({ frames: read }), signal);
  return encodeVideo({
    ...payload,
    ...rest,
    frames: segment.own(readFrames(stdout, { frames: read, signal }), before),
    total: () => segment.length,
    skipsFirst: before > 0,
    onProgress: (_fraction, encoded) => {
      segment.done = encoded;
      onProgress?.();
    },
    signal,
    labelsFor: size => payload.label && from(start, planLabels(payload.label, frames, size)),
  });
}

const from = (start: number, labels: Labels): Labels => ({
  ...labels,
  lines: labels.lines.slice(start),
});
