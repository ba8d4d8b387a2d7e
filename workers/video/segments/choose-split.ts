/** The most frames that a helper takes: they are lost if it has to give up. */
const MAX_FRAMES = 3_000;

interface Frames {
  start: number;
  until: number;
  sure: number;
  done: number;
}

/**
 * Where the second half of the rest of a segment begins, a multiple of the key-frame interval from the video's start;
 * undefined if nothing can be taken.
 */
export function chooseSplit(
  { start, until, sure, done }: Frames,
  keyEvery: number,
): number | undefined {
  const begun = Math.max(sure, start + done);
  const half = Math.max(begun + Math.ceil((until - begun) / 2), until - MAX_FRAMES);
  const split = Math.ceil(half / keyEvery) * keyEvery;
  return split > start && split >= sure && split < until ? split : undefined;
}
