import { WindlassError } from '../../shared/errors.ts';
import { findSizeProblem } from './frame-header.ts';
import type { FrameKind, Size } from './frame-info.ts';
import type { Labels } from './frame-labels.ts';
import { DECODERS } from './packets.ts';

export type VideoType = 'video/mp4' | 'video/webm';

/** ffmpeg's input: image files of one kind, or raw RGB of 8 bits. */
export interface Pictures extends Size {
  kind: FrameKind | 'raw';
  /** Some may be transparent: they are laid on the background. */
  alpha?: true;
  /** Colours are listed: they are looked up before anything else. */
  palette?: true;
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
  /** `#rrggbb`, behind transparent pixels; default black. */
  background?: string;
  codec?: Codec;
  /** Files one after the other, as `cat` writes them, or packets; default packets. */
  framing?: 'files' | 'packets';
  /** For AV1, which has several; default the first that is known. */
  encoder?: string;
  /** Pictures for a corner of each frame: among the packets, or on a pipe of their own beside files. */
  labels?: Pick<Labels, 'size' | 'scale'>;
}

/** The descriptor from which ffmpeg reads labels beside files. */
export const LABELS_PIPE = 3;

export const CODECS = ['h264', 'vp9', 'av1'] as const;
export type Codec = (typeof CODECS)[number];
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

/** The encoder of these for a video, if there is one. */
export function chooseEncoder(
  encoders: readonly string[],
  { type, codec = DEFAULT_CODECS[type] }: Pick<VideoSettings, 'type' | 'codec'>,
): string | undefined {
  return ENCODERS[codec].find(encoder => encoders.includes(encoder));
}

/** What an ffmpeg must have for a video, in words. */
export function nameEncoders({ type, codec }: Pick<VideoSettings, 'type' | 'codec'>): string {
  return ENCODERS[codec ?? DEFAULT_CODECS[type]].join(' or ');
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
  checkMemory(size, settings);
  const threads = isLarge(pictures) || isLarge(size) ? 1 : (settings.threads ?? DEFAULT_THREADS);
  const fps = settings.fps ?? DEFAULT_FPS;
  const input = [
    ...words('-hide_banner -loglevel error -nostats -nostdin -progress pipe:1'),
    ...words('-xerror -err_detect explode -noautorotate -protocol_whitelist pipe'),
    ...words(`-threads ${threads} -filter_threads ${threads}`),
    ...demuxerArguments(pictures, { ...settings, fps }),
  ];
  const filters = filterChain(pictures, size, settings.background);
  const output = [
    ...(settings.labels
      ? layLabels(filters, { ...settings, labels: settings.labels, fps, threads })
      : ['-map', '0:v:0', '-vf', filters]),
    ...words('-an -pix_fmt yuv420p'),
    ...words('-color_range tv -colorspace bt709 -color_primaries bt709 -color_trc bt709'),
    ...encoderArguments({ ...settings, threads }, isLarge(size)),
    // A key frame every second and nowhere else, for seeking and for stills.
    ...words(`-g ${keyFrameEvery(fps)} -keyint_min ${keyFrameEvery(fps)} -sc_threshold 0`),
    ...words(`-f ${FORMATS[settings.type]}`),
  ];
  return { input, output, size: makeEven(size) };
}

/** Frames from one key frame to the next: a second, or one frame where that is longer. */
export const keyFrameEvery = (fps: number) => Math.max(1, Math.floor(fps));

const words = (text: string) => text.split(' ');

function demuxerArguments(
  { kind, width, height }: Pictures,
  { framing, fps, labels }: Pick<VideoSettings, 'framing' | 'labels'> & { fps: number },
): string[] {
  if (kind === 'raw')
    return words(
      `-framerate ${fps} -f rawvideo -pixel_format rgb24 -video_size ${width}x${height}`,
    );
  if (framing === 'files') return words(`-framerate ${fps} -f ${kind}_pipe`);
  // OpenEXR's colours are linear; what a screen shows is sRGB.
  const curve = kind === 'exr' ? ' -apply_trc iec61966_2_1' : '';
  const decoders = labels ? `-c:v:0 ${DECODERS[kind]} -c:v:1 rawvideo` : `-c:v ${DECODERS[kind]}`;
  return words(`-fflags noparse -f avi ${decoders}${curve}`);
}

/** Lays a label over each frame. Its rows and columns come exchanged; see drawCharacter(). */
function layLabels(
  filters: string,
  {
    framing,
    fps,
    threads,
    labels: { size, scale },
  }: Pick<VideoSettings, 'framing'> & {
    fps: number;
    threads: number;
    labels: NonNullable<VideoSettings['labels']>;
  },
): string[] {
  const { width, height } = size;
  const turned = `w=${height * scale}:h=${width * scale}`;
  const label = `transpose=0,scale=${turned}:flags=neighbor:out_range=tv,format=yuv420p`;
  const isApart = framing === 'files';
  const source = `-protocol_whitelist pipe -framerate ${fps} -f rawvideo -pixel_format gray -video_size ${width}x${height}`;
  return [
    ...(isApart ? words(`${source} -i pipe:${LABELS_PIPE}`) : []),
    ...words(`-filter_complex_threads ${threads} -filter_complex`),
    `[0:v:0]${filters}[video];[${isApart ? '1:v:0' : '0:v:1'}]${label}[label];[video][label]overlay[labelled]`,
    ...words('-map [labelled]'),
  ];
}

/** Pictures above 4096×4096 pixels: each copy that a program keeps of one is counted in hundreds of megabytes. */
export const isLarge = ({ width, height }: Size) => width * height > 2 ** 24;

/**
 * Constant quality. H.264: crf 40 (0) … 14 (1), 23 by default. VP9: crf 56 … 16, 30 by default.
 * 60 pictures of 1280×720 on two cores: 0.8 s with x264's veryfast, 1.2 s with VP9 at good/5, whose
 * file has 0.16 MB; realtime/5 takes 0.7 s for 0.88 MB.
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
    ...(type === 'video/mp4' ? ['-movflags', '+faststart'] : []),
  ];
}

/**
 * VP9 and AV1 keep some 80 bytes for each pixel, whatever they are told: of 8192×8192, libvpx took 5.1 GB and SVT-AV1 3.8 with
 * one thread and no picture that waits; of so many pixels, 1.8. ffmpeg and the decoder are to stay below 2 GiB together.
 */
const MOST_PIXELS_BUT_H264 = 22_000_000;

function checkMemory(
  { width, height }: Size,
  { type, codec = DEFAULT_CODECS[type] }: VideoSettings,
): void {
  if (codec === 'h264' || width * height <= MOST_PIXELS_BUT_H264) return;
  throw new WindlassError('video_failed', {
    detail: `Video creation failed: ${width}×${height} pixels are too many for ${codec}, which takes ${MOST_PIXELS_BUT_H264}.`,
    hint: 'Ask for a smaller width, or for video/mp4 with h264.',
  });
}

/** Without pictures that wait for later ones: of 8192×8192, ffmpeg takes 1.5 GB instead of 3.6. */
const LEAN_X264 = '-preset ultrafast -bf 0 -refs 1 -rc-lookahead 0 -x264-params sync-lookahead=0';
const LEAN_VP9 = ' -lag-in-frames 0 -auto-alt-ref 0';

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

/** The size of the video, which is always even. */
export const planVideoSize = (pictures: Size, width?: number) =>
  makeEven(planSize(pictures, width));

function makeEven({ width, height }: Size): Size {
  return { width: width + (width % 2), height: height + (height % 2) };
}

/**
 * Pads odd sides by repeating the last row or column, before chroma is subsampled: in 4:2:0 the pad filter would drop the
 * odd column, and a black one would darken its neighbour.
 */
function filterChain(pictures: Pictures, size: Size, background = '#000000'): string {
  const even = makeEven(size);
  const isOdd = even.width !== size.width || even.height !== size.height;
  const repeatEdges = `fillborders=right=${even.width - size.width}:bottom=${even.height - size.height}:mode=smear`;
  const isSame = pictures.width === size.width && pictures.height === size.height;
  return [
    ...toPlainColours(pictures, background),
    `scale=${isSame ? '' : `w=${size.width}:h=${size.height}:flags=bicubic:`}out_color_matrix=bt709:out_range=tv`,
    ...(isOdd ? ['format=yuv444p', `pad=${even.width}:${even.height}`, repeatEdges] : []),
    'format=yuv420p',
  ].join(',');
}

/**
 * Lays transparent pictures on the background, which is made of a copy of each: a source of its own would have a clock of
 * its own. `drawbox` would do as well, but crashes ffmpeg 5.1 here. Listed colours are looked up before `scale`, which
 * would round them to what subsampling leaves.
 */
function toPlainColours({ alpha, palette }: Pictures, background: string): string[] {
  if (!alpha) return palette ? ['format=rgb24'] : [];
  const [r, g, b] = [1, 3, 5].map(at => Number.parseInt(background.slice(at, at + 2), 16));
  return [
    'format=rgba',
    `split[over][copy];[copy]lutrgb=r=${r}:g=${g}:b=${b}:a=255[under];[under][over]overlay=format=rgb`,
    'format=rgb24',
  ];
}
