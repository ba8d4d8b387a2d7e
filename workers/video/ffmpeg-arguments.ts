import { WindlassError } from '../../shared/errors/errors.ts';
import type { SpriteTiles } from '../../shared/jobs/payloads/video.ts';
import { filterArguments, makeEven } from './filter-graph.ts';
import { findSizeProblem } from './frame-header.ts';
import { isLarge, type Pictures, type Size } from './frame-info.ts';
import type { Labels } from './frame-labels.ts';
import { DECODERS } from './packets.ts';
import { keyFrameEvery, planTiles, STILL_OUTPUTS } from './plan-stills.ts';

export type VideoType = 'video/mp4' | 'video/webm';

export interface VideoSettings {
  type: VideoType;
  /** Frames a second, 1…120; default 25. */
  fps?: number;
  /** Pixels; the height follows. Default: the frames' own width. */
  width?: number;
  /** 0 (smallest file) … 1 (nearly lossless); default 0.65. */
  quality?: number;
  /** The most threads of the encoder; default 4. */
  threads?: number;
  /** `#rrggbb`, behind transparent pixels; default black. */
  background?: string;
  codec?: Codec;
  /** Files one after the other, as `cat` writes them, or packets; default packets. */
  framing?: 'files' | 'packets';
  /** The encoder for AV1, which has several; default the first that is known. */
  encoder?: string;
  /** A picture for a corner of each frame: among the packets, or for files on a pipe of its own. */
  labels?: Pick<Labels, 'size' | 'scale'>;
  /** The number of frames, to make stills along with the video; none of large ones, as copies take memory. */
  frames?: number;
}

const CODECS = ['h264', 'vp9', 'av1'] as const;
type Codec = (typeof CODECS)[number];
/** The best one first. */
const ENCODERS: Record<Codec, readonly string[]> = {
  h264: ['libx264'],
  vp9: ['libvpx-vp9'],
  av1: ['libsvtav1', 'libaom-av1'],
};
const DEFAULT_CODECS: Record<VideoType, Codec> = { 'video/mp4': 'h264', 'video/webm': 'vp9' };
const FORMATS: Record<VideoType, string> = { 'video/mp4': 'mp4', 'video/webm': 'webm' };

export const DEFAULT_FPS = 25;
const DEFAULT_QUALITY = 0.65;
const DEFAULT_THREADS = 4;

/** SVT-AV1 refuses a picture with a shorter side. */
const LEAST_SVT_SIDE = 64;

/** The encoder of these for a video of this size, if there is one. */
export function chooseEncoder(
  encoders: readonly string[],
  { type, codec = DEFAULT_CODECS[type], fps = DEFAULT_FPS, size }: EncoderQuestion,
): string | undefined {
  const known = ENCODERS[codec].filter(encoder => encoders.includes(encoder));
  const isSmall = size && Math.min(size.width, size.height) < LEAST_SVT_SIDE;
  const unsuited: Record<string, boolean | undefined> = {
    // SVT-AV1, told that every frame is a key frame, makes only the first one.
    libsvtav1: isSmall || (fps >= 1 && keyFrameEvery(fps) === 1),
    // It refuses less than one frame a second.
    'libaom-av1': fps < 1,
  };
  const isSuited = (encoder: string) => !unsuited[encoder];
  return known.find(isSuited) ?? known[0];
}

export interface EncoderQuestion extends Pick<VideoSettings, 'type' | 'codec' | 'fps'> {
  /** The size of the video. */
  size?: Size;
}

/** What an ffmpeg must have for a video, in words. */
export function nameEncoders({ type, codec }: Pick<VideoSettings, 'type' | 'codec'>): string {
  return ENCODERS[codec ?? DEFAULT_CODECS[type]].join(' or ');
}

interface FfmpegArguments {
  /** The options before `-i pipe:0`. */
  input: string[];
  /** The options before the output file. */
  output: string[];
  /** The size of the video, always even. */
  size: Size;
  /** The options before the files of stills, which are made beside the video. */
  stills?: { poster: string[]; sprite: string[]; tiles: SpriteTiles };
}

/**
 * The arguments for ffmpeg 4.0 or newer, on hosts and in workers: pictures on stdin, `-progress` on stdout, errors on
 * stderr. Only the pipe protocol and a forced demuxer are allowed, so that a playlist posing as a picture opens no
 * files. A broken picture ends the encoding; of a PNG so does a wrong checksum, which ffmpeg checks from 5.1 on.
 */
export function ffmpegArguments(pictures: Pictures, settings: VideoSettings): FfmpegArguments {
  const size = planSize(pictures, settings.width);
  checkMemory(size, settings);
  const threads = isLarge(pictures) || isLarge(size) ? 1 : (settings.threads ?? DEFAULT_THREADS);
  const fps = settings.fps ?? DEFAULT_FPS;
  const input = [
    ...words('-hide_banner -loglevel error -nostats -nostdin -progress pipe:1'),
    ...words('-xerror -err_detect explode+crccheck -noautorotate -protocol_whitelist pipe'),
    ...words(`-threads ${threads} -filter_threads ${threads}`),
    ...demuxerArguments(pictures, { ...settings, fps }),
  ];
  const { frames } = settings;
  const stills =
    frames === undefined || isLarge(size) ? undefined : planTiles(makeEven(size), { frames, fps });
  const output = [
    ...filterArguments(pictures, { ...settings, size, fps, threads, stills }),
    ...words('-an -pix_fmt yuv420p'),
    ...words('-color_range tv -colorspace bt709 -color_primaries bt709 -color_trc bt709'),
    ...encoderArguments({ ...settings, threads }, isLarge(size)),
    // A key frame every second and nowhere else, for seeking and for stills.
    ...words(`-g ${keyFrameEvery(fps)} -keyint_min ${keyFrameEvery(fps)} -sc_threshold 0`),
    ...containerArguments(settings.type),
  ];
  return {
    input,
    output,
    size: makeEven(size),
    ...(stills && { stills: { ...STILL_OUTPUTS, tiles: stills.tiles } }),
  };
}

const words = (text: string) => text.split(' ');

function demuxerArguments(
  { kind, alpha, width, height }: Pictures,
  { framing, fps, labels }: Pick<VideoSettings, 'framing' | 'labels'> & { fps: number },
): string[] {
  if (kind === 'raw')
    return words(
      `-framerate ${fps} -f rawvideo -pixel_format rgb24 -video_size ${width}x${height}`,
    );
  if (framing === 'files') return words(`-framerate ${fps} -f ${kind}_pipe`);
  // OpenEXR's colours are linear; what a screen shows is sRGB. Those with alpha are divided by it before.
  const curve = kind === 'exr' && !alpha ? ' -apply_trc iec61966_2_1' : '';
  const decoders = labels ? `-c:v:0 ${DECODERS[kind]} -c:v:1 rawvideo` : `-c:v ${DECODERS[kind]}`;
  return words(`-fflags noparse -f avi ${decoders}${curve}`);
}

/**
 * Constant quality. H.264: crf 40 (0) … 14 (1), 23 by default. VP9: crf 56 … 16, 30 by default. VP9 at good/5 takes 1.2
 * s and 0.16 MB for 60 pictures of 1280×720 on two cores; at realtime/5 0.7 s and 0.88 MB.
 */
function encoderArguments(
  {
    type,
    codec = DEFAULT_CODECS[type],
    encoder = ENCODERS[codec][0] ?? '',
    quality = DEFAULT_QUALITY,
    threads,
  }: VideoSettings,
  isLean: boolean,
): string[] {
  const crf = codec === 'h264' ? Math.round(40 - 26 * quality) : Math.round(56 - 40 * quality);
  const speed: Record<string, string> = {
    libx264: isLean ? LEAN_X264 : '-preset veryfast',
    'libvpx-vp9': `-deadline good -cpu-used 5 -row-mt 1 -b:v 0${isLean ? LEAN_VP9 : ''}`,
    libsvtav1: '-preset 9',
    'libaom-av1': '-cpu-used 8 -row-mt 1 -b:v 0',
  };
  return [
    ...words(`-c:v ${encoder} -threads ${threads} -crf ${crf} ${speed[encoder] ?? ''}`.trimEnd()),
  ];
}

/** How the encoded frames lie in the file: what a player needs first comes first. */
export const containerArguments = (type: VideoType) => [
  ...(type === 'video/mp4' ? ['-movflags', '+faststart'] : []),
  ...['-f', FORMATS[type]],
];

/**
 * VP9 and AV1 keep about 80 bytes per pixel at any setting, 1.8 GB for 22 million (decision 44). ffmpeg and the decoder
 * must stay below 2 GiB together.
 */
const MAX_PIXELS_BUT_H264 = 22_000_000;

function checkMemory(
  { width, height }: Size,
  { type, codec = DEFAULT_CODECS[type] }: VideoSettings,
): void {
  if (codec === 'h264' || width * height <= MAX_PIXELS_BUT_H264) return;
  throw new WindlassError('video_failed', {
    detail: `${width}×${height} pixels are too many for ${codec}, which takes ${MAX_PIXELS_BUT_H264}.`,
    hint: 'Ask for a smaller width, or for video/mp4 with h264.',
  });
}

/** Keeps no pictures back: for 8192×8192 ffmpeg then takes 1.5 GB instead of 3.6. */
const LEAN_X264 = '-preset ultrafast -bf 0 -refs 1 -rc-lookahead 0 -x264-params sync-lookahead=0';
const LEAN_VP9 = ' -lag-in-frames 0 -auto-alt-ref 0';

/** The size of the scaled pictures, before they are padded to even sides. */
function planSize(pictures: Size, width: number | undefined): Size {
  if (width === undefined) return { width: pictures.width, height: pictures.height };
  const height = Math.max(1, Math.round((pictures.height * width) / pictures.width));
  const problem = findSizeProblem(width, height);
  if (problem) {
    throw new WindlassError('video_failed', {
      detail: `of "width" ${width} the video ${problem}.`,
      hint: 'Ask for a smaller width.',
    });
  }
  return { width, height };
}

/** The size of the video, which is always even. */
export const planVideoSize = (pictures: Size, width?: number) =>
  makeEven(planSize(pictures, width));
