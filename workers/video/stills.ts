import { join } from 'node:path';
import type { SpriteTiles } from '../../shared/jobs/catalog.ts';
import { runConfined } from '../sandbox/run-confined.ts';
import type { VideoType } from './ffmpeg-arguments.ts';
import type { Size } from './frame-info.ts';
import { planTiles, STILL_OUTPUTS, stillsGraph } from './plan-stills.ts';
import type { VideoLimits } from './video-limits.ts';

const MAX_SECONDS = 120;
const MAX_FILE_BYTES = 2 ** 28;

export const DEMUXERS: Record<VideoType, string> = { 'video/mp4': 'mov', 'video/webm': 'matroska' };

export interface Stills {
  poster: string;
  sprite: string;
  tiles: SpriteTiles;
}

/**
 * Makes JPEGs of a finished video's key frames, beside its file: the first one in the video's size, and a sprite. Reading key
 * frames alone takes a fraction of decoding it all. Undefined if ffmpeg cannot read what another ffmpeg has encoded, such as
 * AV1: a video without stills is one all the same.
 */
export async function makeStills(options: {
  ffmpeg: string;
  directory: string;
  /** The name of the video in the directory. */
  name: string;
  type: VideoType;
  size: Size;
  frames: number;
  fps: number;
  limits: VideoLimits;
  signal: AbortSignal;
}): Promise<Stills | undefined> {
  const { ffmpeg, directory, name, type, size, limits, signal } = options;
  const plan = planTiles(size, options);
  const poster = join(directory, 'poster.jpg');
  const sprite = join(directory, 'sprite.jpg');
  const graph = ['[0:v:0]split[first][all]', ...stillsGraph(plan, 'keyFrames')];
  const words = [
    ...['-hide_banner', '-loglevel', 'error', '-nostdin', '-y', '-skip_frame', 'nokey'],
    ...['-protocol_whitelist', 'file', '-threads', '1', '-f', DEMUXERS[type], '-i', name],
    ...['-filter_complex', graph.join(';')],
    ...[...STILL_OUTPUTS.poster, poster, ...STILL_OUTPUTS.sprite, sprite],
  ];
  const { code } = await runConfined([ffmpeg, ...words], {
    ...{ directory, memory: limits.memory, seconds: MAX_SECONDS, fileBytes: MAX_FILE_BYTES },
    signal,
  });
  return code === 0 ? { poster, sprite, tiles: plan.tiles } : undefined;
}
