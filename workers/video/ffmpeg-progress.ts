/** Parses ffmpeg's `-progress` output incrementally. fluent-ffmpeg's parser is for its own children, not for a host's. */
export class FfmpegProgress {
  /** Frames encoded so far. */
  frames = 0;
  #partial = '';

  /** Adds a piece of output; true if the count has grown. */
  add(piece: string): boolean {
    const text = this.#partial + piece;
    this.#partial = text.slice(text.lastIndexOf('\n') + 1).slice(-200);
    const frames = lastFrameCount(text);
    if (frames <= this.frames) return false;
    this.frames = frames;
    return true;
  }
}

/** The number in the last complete `frame=` line. */
function lastFrameCount(text: string): number {
  const last = [...text.matchAll(/^frame=\s*(\d+)\s*?\n/gm)].at(-1);
  return Number(last?.[1] ?? 0);
}

/** What is said of a video that is being encoded. */
export const describeEncoding = (encoded: number, { length }: { length: number }) =>
  `encoding: ${Math.min(encoded, length)} of ${length} frames`;
