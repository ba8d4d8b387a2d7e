import type { Pictures, Size } from './frame-info.ts';
import type { Labels } from './frame-labels.ts';
import { stillsGraph, type TilePlan } from './plan-stills.ts';

/** The descriptor from which ffmpeg reads labels beside files. */
export const LABELS_PIPE = 3;

interface FilterSettings {
  /** The scaled pictures' size, before odd sides are padded. */
  size: Size;
  background?: string;
  labels?: LabelSize;
  framing?: 'files' | 'packets';
  fps: number;
  threads: number;
  stills: TilePlan | undefined;
}

type LabelSize = Pick<Labels, 'size' | 'scale'>;

/**
 * The filters before the encoder: colours, size, labels. Stills branch off the same pictures: decoding the video again
 * for them would take a tenth of the encoding's time.
 */
export function filterArguments(pictures: Pictures, settings: FilterSettings): string[] {
  const { size, background, labels, framing, fps, threads, stills } = settings;
  const filters = filterChain(pictures, size, background);
  if (!labels && !stills) return ['-map', '0:v:0', '-vf', filters];
  const made = labels ? layLabels(`[0:v:0]${filters}`, { labels, framing }) : `[0:v:0]${filters}`;
  const graph = stills
    ? [`${made},split=3[video][first][all]`, ...stillsGraph(stills, 'frames')]
    : [`${made}[video]`];
  return [
    ...(labels && framing === 'files' ? labelInput(labels, fps) : []),
    ...['-filter_complex_threads', String(threads), '-filter_complex', graph.join(';')],
    ...['-map', '[video]'],
  ];
}

function labelInput({ size: { width, height } }: LabelSize, fps: number): string[] {
  const source = `-protocol_whitelist pipe -framerate ${fps} -f rawvideo -pixel_format gray -video_size ${width}x${height}`;
  return `${source} -i pipe:${LABELS_PIPE}`.split(' ');
}

/** Lays a label over each frame. Its rows and columns come exchanged; see drawCharacter(). */
function layLabels(
  pictures: string,
  { labels: { size, scale }, framing }: { labels: LabelSize; framing: FilterSettings['framing'] },
): string {
  const turned = `w=${size.height * scale}:h=${size.width * scale}`;
  const label = `transpose=0,scale=${turned}:flags=neighbor:out_range=tv,format=yuv420p`;
  const source = framing === 'files' ? '1:v:0' : '0:v:1';
  return `${pictures}[plain];[${source}]${label}[label];[plain][label]overlay`;
}

export function makeEven({ width, height }: Size): Size {
  return { width: width + (width % 2), height: height + (height % 2) };
}

/**
 * Pads odd sides by repeating the last row or column, before chroma subsampling: in 4:2:0 the pad filter would drop the
 * odd column, and a black one would darken its neighbour.
 */
function filterChain(pictures: Pictures, size: Size, background = '#000000'): string {
  const even = makeEven(size);
  const isOdd = even.width !== size.width || even.height !== size.height;
  const repeatEdges = `fillborders=right=${even.width - size.width}:bottom=${even.height - size.height}:mode=smear`;
  // Blended ones are of whole numbers already.
  const isLight = pictures.kind === 'exr' && !pictures.alpha;
  const isSame = pictures.width === size.width && pictures.height === size.height;
  return [
    ...toPlainColours(pictures, background),
    `scale=${isSame ? '' : `w=${size.width}:h=${size.height}:flags=bicubic:`}${isLight ? `${FULL_RANGE}:` : ''}out_color_matrix=bt709:out_range=tv`,
    ...(isOdd ? ['format=yuv444p', `pad=${even.width}:${even.height}`, repeatEdges] : []),
    'format=yuv420p',
  ].join(',');
}

/** ffmpeg takes grey floats, as of EXR, for a range with footroom and headroom. */
const FULL_RANGE = 'in_range=pc';

/**
 * Lays transparent pictures on a background made from a copy of each, because a source has a clock of its own and
 * `drawbox` crashes ffmpeg 5.1. Palettes are resolved before `scale`, which would round their colours to subsampled
 * ones.
 */
function toPlainColours({ kind, alpha, palette }: Pictures, background: string): string[] {
  if (!alpha) return palette ? ['format=rgb24'] : [];
  const [r, g, b] = [1, 3, 5].map(at => Number.parseInt(background.slice(at, at + 2), 16));
  return [
    ...(kind === 'exr' ? EXR_TO_SRGB : []),
    'format=rgba',
    `split[over][copy];[copy]lutrgb=r=${r}:g=${g}:b=${b}:a=255[under];[under][over]overlay=format=rgb`,
    'format=rgb24',
  ];
}

const SRGB =
  "'maxval*if(lte(val,0.0031308*maxval),12.92*val/maxval,1.055*pow(val/maxval,1/2.4)-0.055)'";

/**
 * The colours of EXR are linear light multiplied by their alpha: they are divided by it, and then get their curve. What
 * is not said to be of full range the ffmpeg of npm divides wrongly.
 */
const EXR_TO_SRGB = [
  `scale=${FULL_RANGE}:out_range=pc`,
  'format=gbrap16',
  'unpremultiply=inplace=1',
  `lutrgb=r=${SRGB}:g=${SRGB}:b=${SRGB}`,
];
