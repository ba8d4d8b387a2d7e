/** Follows ffmpeg's `-progress` text as it comes in pieces. */
export class ProgressReader {
  /** Frames that ffmpeg says it has made. */
  frames = 0;
  #partial = '';

  /** Takes a piece; returns true when the count has grown. */
  add(piece: string): boolean {
    const text = this.#partial + piece;
    this.#partial = text.slice(text.lastIndexOf('\n') + 1).slice(-200);
    const frames = countMadeFrames(text);
    if (frames <= this.frames) return false;
    this.frames = frames;
    return true;
  }
}

/** The number in the last whole `frame=` line; a line that is not ended may still grow. */
function countMadeFrames(text: string): number {
  const last = [...text.matchAll(/^frame=\s*(\d+)\s*?\n/gm)].at(-1);
  return Number(last?.[1] ?? 0);
}
