import type { SpriteTiles } from '../../shared/jobs/payloads/video.ts';
import type { Size } from './frame-info.ts';

/** Limit of small pictures in a sprite; a longer video has fewer a second. */
const MAX_TILES = 100;
const COLUMNS = 10;
/** Pixels of the longer side of a small picture. */
const TILE_SIDE = 160;

/** Frames between key frames: a second, or one frame if that is longer. */
export const keyFrameEvery = (fps: number) => Math.max(1, Math.floor(fps));

export interface TilePlan {
  /** The number of frames, and of key frames, for which there is one small picture. */
  frames: number;
  keyFrames: number;
  tiles: SpriteTiles;
}

/** How all, or every n-th, of a video's key frames lie in its sprite. */
export function planTiles(size: Size, { frames, fps }: { frames: number; fps: number }): TilePlan {
  const every = keyFrameEvery(fps);
  const keys = Math.ceil(frames / every);
  const keyFrames = Math.ceil(keys / MAX_TILES);
  const count = Math.ceil(keys / keyFrames);
  const scale = Math.min(1, TILE_SIDE / Math.max(size.width, size.height));
  const tiles: SpriteTiles = {
    count,
    columns: Math.min(COLUMNS, count),
    width: Math.max(2, Math.round(size.width * scale)),
    height: Math.max(2, Math.round(size.height * scale)),
    every: (every * keyFrames) / fps,
    duration: frames / fps,
  };
  return { frames: every * keyFrames, keyFrames, tiles };
}

/** JPEG's colours are of another matrix and range than the video's. */
const COLOURS = 'in_range=tv:in_color_matrix=bt709:out_color_matrix=bt601:out_range=pc';

/**
 * A filter graph from all pictures or the key frames, `[first]` and `[all]`, to `[poster]` and `[sprite]`. The sprite
 * begins with an empty picture, because ffmpeg reports no progress until each output has begun.
 */
export function stillsGraph(plan: TilePlan, of: 'frames' | 'keyFrames'): string[] {
  const { count, columns, width, height } = plan.tiles;
  const rows = Math.ceil(count / columns);
  const jpeg = 'format=yuvj420p,setsar=1';
  const tiles = [
    `select=not(mod(n\\,${plan[of]}))`,
    `scale=${width}:${height}:flags=area:${COLOURS}`,
    // setpts=0: ffmpeg would repeat the empty picture up to a later time.
    `format=yuvj420p,tile=${columns}x${rows},setsar=1,setpts=0`,
  ].join(',');
  return [
    `[first]select=eq(n\\,0),scale=${COLOURS},${jpeg}[poster]`,
    `[all]${tiles}[tiles]`,
    // In a subsampled format the source would make odd sides even, and concat takes no other size than the tiles'.
    `color=s=${columns * width}x${rows * height}:r=25:d=0.04,format=rgb24,${jpeg}[none]`,
    '[none][tiles]concat[sprite]',
  ];
}

/** The options before the files of the stills. The sprite's last picture replaces the one before it. */
export const STILL_OUTPUTS = {
  poster: '-map [poster] -frames:v 1 -c:v mjpeg -threads 1 -q:v 3 -f image2pipe'.split(' '),
  sprite: '-map [sprite] -r 25 -c:v mjpeg -threads 1 -q:v 4 -f image2 -update 1'.split(' '),
};
