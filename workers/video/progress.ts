/** The share of frames made, 0…1, by the last whole `frame=` line of ffmpeg's `-progress` text; undefined where there is none. */
export function parseProgress(text: string, total: number): number | undefined {
  const frames = countMadeFrames(text);
  return frames === undefined ? undefined : Math.min(1, frames / Math.max(1, total));
}

/** The number in the last whole `frame=` line; a line that is not ended may still grow. */
export function countMadeFrames(text: string): number | undefined {
  const last = [...text.matchAll(/^frame=\s*(\d+)\s*?\n/gm)].at(-1);
  return last ? Number(last[1]) : undefined;
}

/** Follows ffmpeg's `-progress` text as it comes in pieces. */
export class ProgressReader {
  /** Frames that ffmpeg says it has made. */
  frames = 0;
  #partial = '';

  /** Takes a piece; returns true when the count has grown. */
  add(piece: string): boolean {
    const text = this.#partial + piece;
    this.#partial = text.slice(text.lastIndexOf('\n') + 1).slice(-200);
    const frames = countMadeFrames(text) ?? 0;
    if (frames <= this.frames) return false;
    this.frames = frames;
    return true;
  }
}
