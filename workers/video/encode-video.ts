import { rm, stat } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { Readable } from 'node:stream';
import type { SpriteTiles } from '../../shared/jobs/payloads/video.ts';
import {
  DEFAULT_FPS,
  ffmpegArguments,
  planVideoSize,
  type VideoSettings,
} from './ffmpeg-arguments.ts';
import { FfmpegProgress } from './ffmpeg-progress.ts';
import { findEncoder, findFfmpeg } from './find-ffmpeg.ts';
import type { Pictures, Size } from './frame-info.ts';
import { drawLabel, type Labels } from './frame-labels.ts';
import { FrameValidator } from './frame-validator.ts';
import { FrameNormalizer } from './normalize-frames.ts';
import { packetHeader, packetOf } from './packets.ts';
import type { FrameFailure, ReadFrame } from './read-frames.ts';
import { type FfmpegEnd, runFfmpeg } from './run-ffmpeg.ts';
import { toVideoError } from './video-error.ts';
import type { VideoLimits } from './video-limits.ts';

export interface EncodeVideoOptions extends Omit<VideoSettings, 'labels' | 'frames'> {
  /** The frames in order, of any kinds, all of one size; the first unusable one ends it with `bad_frames`. */
  frames: AsyncIterable<ReadFrame | FrameFailure>;
  /** The number of frames; a function if it may shrink during the encoding. */
  total: number | (() => number);
  /** The first frame only determines how all are made; it is not part of the video. */
  skipsFirst?: boolean;
  /** Overwritten; removed if the encoding fails. Its directory belongs to the user of findIsolation(). */
  outputPath: string;
  /** The files of the stills, which are made unless the pictures are large. */
  stillPaths?: { poster: string; sprite: string };
  limits: VideoLimits;
  /** 0…1, never decreasing, and how many frames that are. */
  onProgress?(fraction: number, encoded: number): void;
  signal?: AbortSignal;
  /** Default: findFfmpeg(). */
  ffmpeg?: string;
  /** Decodes every frame before ffmpeg gets it. */
  decodeAll?: boolean;
  /** What is drawn into the frames, for the size of the video. */
  labelsFor?(size: Size): Labels | undefined;
  /** Called with the size of the video before anything is encoded. */
  onSize?(size: Size): void;
}

export interface EncodedVideo {
  bytes: number;
  /** The tiles of the sprite, if stills were made that can be used. */
  tiles?: SpriteTiles;
  frames: number;
  width: number;
  height: number;
}

/**
 * Encodes a video from a stream of frames, which are in memory one at a time or as many as are decoded at once. Settles
 * when ffmpeg has exited; if this process dies, ffmpeg and decoders end with their input. Throws WindlassError
 * `bad_frames`, `video_failed` (`extra.returncode`, `extra.stderr`), the frames' errors, the signal's reason.
 */
export async function encodeVideo(options: EncodeVideoOptions): Promise<EncodedVideo> {
  const { frames, outputPath, stillPaths, limits, onProgress, signal, ...settings } = options;
  const total = () => (typeof options.total === 'number' ? options.total : options.total());
  const validator = new FrameValidator(limits.framePixels);
  const source = new FrameNormalizer(frames, validator, options);
  const progress = new FfmpegProgress();
  const close = () => source.close();
  signal?.addEventListener('abort', close, { once: true });
  try {
    signal?.throwIfAborted();
    const pictures = await source.open();
    const ffmpeg = options.ffmpeg ?? (await findFfmpeg());
    const threads = settings.threads ?? Math.min(8, availableParallelism());
    const planned = planVideoSize(pictures, settings.width);
    options.onSize?.(planned);
    const encoder = settings.codec && (await findEncoder(ffmpeg, { ...settings, size: planned }));
    const labels = options.labelsFor?.(planned);
    const given = labels ? asPackets(pictures) : pictures;
    const { input, output, stills, size } = ffmpegArguments(given, {
      ...settings,
      threads,
      encoder,
      labels,
      frames: stillPaths && total(),
    });
    const outputs = [{ path: outputPath, options: output }];
    if (stills && stillPaths) {
      outputs.push({ path: stillPaths.poster, options: stills.poster });
      outputs.push({ path: stillPaths.sprite, options: stills.sprite });
    }
    const end = await runFfmpeg({
      ffmpeg,
      inputOptions: input,
      input: Readable.from(frame(source.read(), { pictures, fps: settings.fps, labels }), {
        objectMode: false,
      }),
      outputs,
      limits,
      onStdout: piece => {
        if (progress.add(piece))
          onProgress?.(Math.min(1, progress.frames / total()), progress.frames);
      },
      signal,
    });
    assertComplete(end, progress.frames, total());
    const { size: bytes } = await stat(outputPath);
    // Then those that were made meanwhile lack pictures.
    const tiles = validator.varies ? undefined : stills?.tiles;
    return { bytes, frames: progress.frames, tiles, ...size };
  } catch (error) {
    await rm(outputPath, { force: true });
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener('abort', close);
    close();
  }
}

/** The pictures in the form that ffmpeg reads: raw ones without labels concatenated, others as packets. */
async function* frame(
  source: AsyncIterable<Buffer>,
  { pictures, fps = DEFAULT_FPS, labels }: { pictures: Pictures; fps?: number; labels?: Labels },
): AsyncGenerator<Buffer> {
  if (pictures.kind === 'raw' && !labels) return yield* source;
  yield packetHeader(pictures, fps, labels?.size);
  let n = 0;
  for await (const picture of source) {
    if (labels) yield* packetOf(drawLabel(labels.lines[n++] ?? ''), 1);
    yield* packetOf(pictures.kind === 'raw' ? toPnm(picture, pictures) : picture);
  }
}

/** Packets have no raw pictures that lie as ours do. */
const asPackets = (pictures: Pictures): Pictures =>
  pictures.kind === 'raw' ? { ...pictures, kind: 'pnm' } : pictures;

const toPnm = (rgb: Buffer, { width, height }: Size) =>
  Buffer.concat([Buffer.from(`P6 ${width} ${height} 255\n`), rgb]);

function assertComplete(end: FfmpegEnd, encoded: number, total: number): void {
  if (end.returncode !== 0) throw toVideoError(end);
  if (encoded !== total)
    throw toVideoError(end, `the video has ${encoded} pictures for ${total} frames`);
}
