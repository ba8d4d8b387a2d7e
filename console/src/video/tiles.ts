/** How the small pictures of a video lie in its sprite, row by row. */
export interface Tiles {
  count: number;
  columns: number;
  /** px, of each. */
  width: number;
  height: number;
  /** Seconds from one to the next, and of the whole video. */
  every: number;
  duration: number;
}

/** The small picture of a frame: where it lies in the sprite. */
export function placeTile({ count, columns, width, height, every }: Tiles, time: number) {
  const at = Math.max(0, Math.min(count - 1, Math.floor(time / every)));
  return { x: (at % columns) * width, y: Math.floor(at / columns) * height };
}
