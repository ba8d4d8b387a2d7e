/** The most frames of a segment that a helper takes: what is lost where it has to give up. */
const MOST_FRAMES = 3_000;

interface Frames {
  start: number;
  until: number;
  sure: number;
  done: number;
}

/**
 * Where the second half begins of what is left of a segment, a multiple of the key-frame interval from the beginning of the
 * video; undefined where nothing can be taken.
 */
export function chooseSplit(
  { start, until, sure, done }: Frames,
  keyEvery: number,
): number | undefined {
  const begun = Math.max(sure, start + done);
  const half = Math.max(begun + Math.ceil((until - begun) / 2), until - MOST_FRAMES);
  const split = Math.ceil(half / keyEvery) * keyEvery;
  return split > start && split >= sure && split < until ? split : undefined;
}
