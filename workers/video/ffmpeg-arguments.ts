import { WindlassError } from '../../shared/errors.ts';
import { type FrameKind, findSizeProblem } from './frame-header.ts';

export type VideoType = 'video/mp4' | 'video/webm';

export interface Size {
  width: number;
  height: number;
}

/** ffmpeg's input: image files of one kind, or raw RGB of 8 bits. */
export interface Pictures extends Size {
  kind: FrameKind | 'raw';
}

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
}

const ENCODERS: Record<VideoType, string> = {
  'video/mp4': 'libx264',
  'video/webm': 'libvpx-vp9',
};
const FORMATS: Record<VideoType, string> = { 'video/mp4': 'mp4', 'video/webm': 'webm' };

const DEFAULT_FPS = 25;
const DEFAULT_QUALITY = 0.65;
const DEFAULT_THREADS = 4;

/** Whether an ffmpeg with these encoders can encode this type of video with these arguments. */
export function hasEncoder(encoders: readonly string[], type: VideoType): boolean {
  return encoders.includes(ENCODERS[type]);
}

export interface FfmpegArguments {
  /** Before `-i pipe:0`. */
  input: string[];
  /** Before the output file. */
  output: string[];
  /** Of the video, always even. */
  size: Size;
}

/**
 * The arguments for ffmpeg 4.0 and newer, on a host and in a worker. Pictures come on standard input; `-progress` goes to
 * standard output, errors to standard error.
 *
 * The demuxer is forced and only the pipe protocol is allowed, so a "picture" that is a playlist cannot open other files.
 * A broken picture ends the encoding (`-xerror -err_detect explode`) and is not skipped.
 */
export function ffmpegArguments(pictures: Pictures, settings: VideoSettings): FfmpegArguments {
  const size = planSize(pictures, settings.width);
  const fps = settings.fps ?? DEFAULT_FPS;
  const input = [
    ...words('-hide_banner -loglevel error -nostats -nostdin -progress pipe:1'),
    ...words('-xerror -err_detect explode -noautorotate -protocol_whitelist pipe'),
    ...words(`-threads ${settings.threads ?? DEFAULT_THREADS} -framerate ${fps}`),
    ...demuxerArguments(pictures),
  ];
  const output = [
    ...['-map', '0:v:0', '-an', '-vf', filterChain(pictures, size), '-pix_fmt', 'yuv420p'],
    ...words('-color_range tv -colorspace bt709 -color_primaries bt709 -color_trc bt709'),
    ...encoderArguments(settings),
    // A keyframe at least every two seconds, for seeking.
    ...words(`-g ${Math.max(25, Math.round(2 * fps))} -f ${FORMATS[settings.type]}`),
  ];
  return { input, output, size: makeEven(size) };
}

const words = (text: string) => text.split(' ');

function demuxerArguments({ kind, width, height }: Pictures): string[] {
  if (kind !== 'raw') return ['-f', `${kind}_pipe`];
  return words(`-f rawvideo -pixel_format rgb24 -video_size ${width}x${height}`);
}

/**
 * Constant quality. H.264: crf 40 (0) … 14 (1), 23 by default. VP9: crf 56 … 16, 30 by default.
 * 60 pictures of 1280×720 on two cores: 0.8 s with x264's veryfast, 1.2 s with VP9 at good/5, whose
 * file has 0.16 MB; realtime/5 takes 0.7 s for 0.88 MB.
 */
function encoderArguments({
  type,
  quality = DEFAULT_QUALITY,
  threads = DEFAULT_THREADS,
}: VideoSettings): string[] {
  const codec = `-c:v ${ENCODERS[type]} -threads ${threads}`;
  if (type === 'video/mp4') {
    const crf = Math.round(40 - 26 * quality);
    return words(`${codec} -preset veryfast -crf ${crf} -movflags +faststart`);
  }
  const crf = Math.round(56 - 40 * quality);
  return words(`${codec} -deadline good -cpu-used 5 -row-mt 1 -crf ${crf} -b:v 0`);
}

/** The size of the scaled pictures, before they are padded to even sides. */
function planSize(pictures: Size, width: number | undefined): Size {
  if (width === undefined) return { width: pictures.width, height: pictures.height };
  const height = Math.max(1, Math.round((pictures.height * width) / pictures.width));
  const problem = findSizeProblem(width, height);
  if (problem) {
    throw new WindlassError('bad_frames', {
      detail: `the video ${problem}.`,
      hint: 'Ask for a smaller width.',
    });
  }
  return { width, height };
}

function makeEven({ width, height }: Size): Size {
  return { width: width + (width % 2), height: height + (height % 2) };
}

/**
 * Pads odd sides by repeating the last row or column, before chroma is subsampled: in 4:2:0 the pad filter would drop the
 * odd column, and a black one would darken its neighbour.
 */
function filterChain(pictures: Size, size: Size): string {
  const even = makeEven(size);
  const isOdd = even.width !== size.width || even.height !== size.height;
  const repeatEdges = `fillborders=right=${even.width - size.width}:bottom=${even.height - size.height}:mode=smear`;
  const isSame = pictures.width === size.width && pictures.height === size.height;
  return [
    `scale=${isSame ? '' : `w=${size.width}:h=${size.height}:flags=bicubic:`}out_color_matrix=bt709:out_range=tv`,
    ...(isOdd ? ['format=yuv444p', `pad=${even.width}:${even.height}`, repeatEdges] : []),
    'format=yuv420p',
  ].join(',');
}
