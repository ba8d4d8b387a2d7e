import { join } from 'node:path';
import type { SpriteTiles } from '../../shared/jobs/payloads/video.ts';
import { runConfined } from '../sandbox/run-confined.ts';
import type { VideoType } from './ffmpeg-arguments.ts';
import type { Size } from './frame-info.ts';
import { planTiles, STILL_OUTPUTS, stillsGraph } from './plan-stills.ts';
import type { VideoLimits } from './video-limits.ts';

const MAX_SECONDS = 120;
const MAX_FILE_BYTES = 2 ** 28;

export const DEMUXERS: Record<VideoType, string> = { 'video/mp4': 'mov', 'video/webm': 'matroska' };

/**
 * ffmpeg copies key frames alone only from MP4, and few of its decoders skip the others, so WebM is first copied into
 * MP4.
 */
const COPY = 'copy.mp4';
const KEY_FRAMES = 'key-frames.mp4';

interface Stills {
  poster: string;
  sprite: string;
  tiles: SpriteTiles;
}

/**
 * Makes JPEGs of a finished video's key frames, beside its file: the first in full size, and a sprite. Reads key frames
 * only, which takes a fraction of decoding. Undefined if this ffmpeg cannot decode the video, such as AV1 from another
 * one.
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
  const run = async (fileBytes: number, words: string[]) => {
    const given = ['-hide_banner', '-loglevel', 'error', '-nostdin', '-y', '-threads', '1'];
    const { code } = await runConfined(
      [ffmpeg, ...given, '-protocol_whitelist', 'file', ...words],
      {
        directory,
        ...limits,
        seconds: MAX_SECONDS,
        fileBytes,
        signal,
      },
    );
    return code === 0;
  };
  const copy = (from: string[], to: string) =>
    run(limits.fileBytes, [...from, '-map', '0:v:0', '-c', 'copy', '-f', 'mp4', to]);
  const readMp4 = ['-f', DEMUXERS['video/mp4'], '-i'];
  const isMp4 = type === 'video/mp4';
  if (!isMp4 && !(await copy(['-f', DEMUXERS[type], '-i', name], COPY))) return undefined;
  if (!(await copy(['-discard', 'nokey', ...readMp4, isMp4 ? name : COPY], KEY_FRAMES)))
    return undefined;
  const isMade = await run(MAX_FILE_BYTES, [
    ...[...readMp4, KEY_FRAMES, '-filter_complex', graph.join(';')],
    ...[...STILL_OUTPUTS.poster, poster, ...STILL_OUTPUTS.sprite, sprite],
  ]);
  return isMade ? { poster, sprite, tiles: plan.tiles } : undefined;
}
