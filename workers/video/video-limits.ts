import { WindlassError } from '../../shared/errors/errors.ts';
import type { Config } from '../../shared/settings/config.ts';

/** What encoding one video may use. */
export interface VideoLimits {
  /** Resident memory in bytes. */
  memory: number;
  seconds: number;
  /** The largest video in bytes. */
  fileBytes: number;
  /** LIMIT_FREE_BYTES. */
  keepFree: number;
  /** The pixels of the largest frame. */
  framePixels: number;
}

export const videoLimits = (config: Config): VideoLimits => ({
  memory: config.LIMIT_VIDEO_BYTES,
  seconds: config.LIMIT_VIDEO_SECONDS,
  fileBytes: config.LIMIT_OUTPUT_BYTES || Number.MAX_SAFE_INTEGER,
  keepFree: config.LIMIT_FREE_BYTES,
  framePixels: config.LIMIT_FRAME_PIXELS,
});

export function tooLarge(memory: number): WindlassError {
  return new WindlassError('video_failed', {
    detail: `the video needs more than ${memory} bytes of memory.`,
    hint: 'Ask for a smaller width or smaller frames. LIMIT_VIDEO_BYTES sets the limit.',
  });
}

export function fileTooLarge(bytes: number): WindlassError {
  return new WindlassError('output_limit', {
    detail: `the video, or a still of it, has more than ${bytes} bytes.`,
    hint: 'Make several shorter videos. LIMIT_OUTPUT_BYTES sets the limit.',
  });
}

export function tooSlow(seconds: number): WindlassError {
  return new WindlassError('time_limit', {
    detail: `the video was not made within ${seconds} s.`,
    hint: 'Make several shorter videos. LIMIT_VIDEO_SECONDS sets the limit.',
  });
}

export function printsTooMuch(length: number): WindlassError {
  return new WindlassError('video_failed', {
    detail: `ffmpeg printed a line of more than ${length} characters.`,
    hint: 'Check whether a frame is damaged.',
  });
}
