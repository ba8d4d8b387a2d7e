/** Frames of a video that all last as long: their number, and the seconds of the whole. */
export interface Timing {
  frames: number;
  duration: number;
}

const clamp = (frame: number, { frames }: Timing) => Math.max(0, Math.min(frames - 1, frame));

/** The frame, from 0, that begins at a time: files round it, WebM to milliseconds. */
export const frameFrom = (time: number, timing: Timing): number =>
  clamp(Math.round((time * timing.frames) / timing.duration), timing);

/** A time within a frame: its middle, since a time at its edge may show the one before. */
export const timeOf = (frame: number, timing: Timing): number =>
  ((clamp(frame, timing) + 0.5) * timing.duration) / timing.frames;

/** As 1:02.50. */
export function formatTime(seconds: number): string {
  const hundredths = Math.round(seconds * 100);
  const minutes = Math.floor(hundredths / 6_000);
  return `${minutes}:${((hundredths - minutes * 6_000) / 100).toFixed(2).padStart(5, '0')}`;
}
