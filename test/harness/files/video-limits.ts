import type { VideoLimits } from '../../../workers/video/video-limits.ts';

/** More than a small video needs. */
export const AMPLE: VideoLimits = {
  memory: 2 * 2 ** 30,
  seconds: 600,
  fileBytes: 2 ** 30,
  keepFree: 0,
  framePixels: 2 ** 26,
};
