import { spawn } from 'node:child_process';
import { join } from 'node:path';
import type { SpriteTiles } from '../../shared/jobs/catalog.ts';
import { confine, findIsolation } from '../sandbox/confine.ts';
import { watchMemory } from '../sandbox/watch-memory.ts';
import { keyFrameEvery, type VideoType } from './ffmpeg-arguments.ts';
import type { Size } from './frame-info.ts';
import type { VideoLimits } from './video-limits.ts';

/** Small pictures, at most; a longer video has fewer a second. */
const MAX_TILES = 100;
const COLUMNS = 10;
/** The longer side of one. */
const TILE_SIDE = 160;
const MAX_SECONDS = 120;
const MAX_FILE_BYTES = 2 ** 28;

const DEMUXERS: Record<VideoType, string> = { 'video/mp4': 'mov', 'video/webm': 'matroska' };

export interface Stills {
  poster: string;
  sprite: string;
  tiles: SpriteTiles;
}

/** How the key frames of a video, or every so many of them, lie in its sprite. */
export function planTiles(size: Size, { frames, fps }: { frames: number; fps: number }) {
  const every = keyFrameEvery(fps);
  const keys = Math.ceil(frames / every);
  const step = Math.ceil(keys / MAX_TILES);
  const count = Math.ceil(keys / step);
  const scale = Math.min(1, TILE_SIDE / Math.max(size.width, size.height));
  const tiles: SpriteTiles = {
    count,
    columns: Math.min(COLUMNS, count),
    width: Math.max(2, Math.round(size.width * scale)),
    height: Math.max(2, Math.round(size.height * scale)),
    every: (every * step) / fps,
    duration: frames / fps,
  };
  return { step, tiles };
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
  const { step, tiles } = planTiles(size, options);
  const { columns, count, width, height } = tiles;
  const poster = join(directory, 'poster.jpg');
  const sprite = join(directory, 'sprite.jpg');
  const colours = 'in_color_matrix=bt709:out_color_matrix=bt601:out_range=pc';
  const rows = Math.ceil(count / columns);
  const small = `select=not(mod(n\\,${step})),scale=${width}:${height}:flags=area:${colours},format=yuvj420p`;
  const words = [
    ...['-hide_banner', '-loglevel', 'error', '-nostdin', '-y', '-skip_frame', 'nokey'],
    ...['-protocol_whitelist', 'file', '-threads', '1', '-f', DEMUXERS[type], '-i', name],
    ...['-map', '0:v:0', '-vf', `scale=${colours},format=yuvj420p`, '-frames:v', '1'],
    ...['-c:v', 'mjpeg', '-q:v', '3', '-f', 'image2pipe', poster],
    ...['-map', '0:v:0', '-vf', `${small},tile=${columns}x${rows}`, '-frames:v', '1'],
    ...['-c:v', 'mjpeg', '-q:v', '4', '-f', 'image2pipe', sprite],
  ];
  const confinement = {
    memory: limits.memory,
    processorSeconds: MAX_SECONDS,
    fileBytes: MAX_FILE_BYTES,
  };
  const [program, ...args] = confine([ffmpeg, ...words], confinement, {
    isolation: await findIsolation(),
  });
  signal.throwIfAborted();
  const child = spawn(program, args, { cwd: directory, stdio: 'ignore' });
  const end = () => child.kill('SIGKILL');
  signal.addEventListener('abort', end, { once: true });
  const timer = setTimeout(end, MAX_SECONDS * 1_000);
  const watch = watchMemory(child, limits.memory, end);
  const code = await new Promise(resolve => {
    child.once('error', () => resolve(undefined));
    child.once('close', resolve);
  });
  clearTimeout(timer);
  clearInterval(watch);
  signal.removeEventListener('abort', end);
  signal.throwIfAborted();
  return code === 0 ? { poster, sprite, tiles } : undefined;
}
