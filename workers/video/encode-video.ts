import { rm, stat } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { Readable } from 'node:stream';
import {
  DEFAULT_FPS,
  ffmpegArguments,
  type Pictures,
  type VideoSettings,
} from './ffmpeg-arguments.ts';
import { FfmpegProgress } from './ffmpeg-progress.ts';
import { findEncoder, findFfmpeg } from './find-ffmpeg.ts';
import { FrameValidator } from './frame-validator.ts';
import { FrameNormalizer } from './normalize-frames.ts';
import { packetHeader, packetOf } from './packets.ts';
import type { Frame, FrameFailure } from './read-frames.ts';
import { type FfmpegEnd, runFfmpeg } from './run-ffmpeg.ts';
import { toVideoError } from './video-error.ts';
import type { VideoLimits } from './video-limits.ts';

export interface EncodeVideoOptions extends VideoSettings {
  /** In order, of any kinds, all of one size; the first that cannot be used ends it with `bad_frames`. */
  frames: AsyncIterable<Frame | FrameFailure>;
  /** The number of frames. */
  total: number;
  /** Overwritten; removed if the encoding fails. Its folder belongs to the user of findIsolation(). */
  outputPath: string;
  limits: VideoLimits;
  /** 0…1, never decreasing. */
  onProgress?(share: number): void;
  signal?: AbortSignal;
  /** Default: findFfmpeg(). */
  ffmpeg?: string;
  /** Decodes every frame before ffmpeg gets it. */
  decodeAll?: boolean;
}

export interface EncodedVideo {
  bytes: number;
  frames: number;
  width: number;
  height: number;
}

/**
 * Encodes a video from a stream of frames, with one frame in memory at a time. Settles when ffmpeg has exited. Throws
 * WindlassError `bad_frames`; `video_failed` with `extra.returncode` and `extra.stderr`; the errors of reading the frames;
 * the signal's reason. If this process dies, ffmpeg and the decoder end with their input and leave an incomplete file.
 */
export async function encodeVideo(options: EncodeVideoOptions): Promise<EncodedVideo> {
  const { frames, total, outputPath, limits, onProgress, signal, ...settings } = options;
  const source = new FrameNormalizer(frames, new FrameValidator(), options);
  const progress = new FfmpegProgress();
  const close = () => source.close();
  signal?.addEventListener('abort', close, { once: true });
  try {
    signal?.throwIfAborted();
    const pictures = await source.open();
    const ffmpeg = options.ffmpeg ?? (await findFfmpeg());
    const threads = settings.threads ?? Math.min(8, availableParallelism());
    const encoder = settings.codec && (await findEncoder(ffmpeg, settings));
    const { size, ...args } = ffmpegArguments(pictures, { ...settings, threads, encoder });
    const end = await runFfmpeg({
      ffmpeg,
      arguments: args,
      input: Readable.from(frame(source.read(), pictures, settings.fps), { objectMode: false }),
      outputPath,
      limits,
      onStdout: piece => {
        if (progress.add(piece)) onProgress?.(Math.min(1, progress.frames / total));
      },
      signal,
    });
    assertComplete(end, progress.frames, total);
    return { bytes: (await stat(outputPath)).size, frames: progress.frames, ...size };
  } catch (error) {
    await rm(outputPath, { force: true });
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener('abort', close);
    close();
  }
}

/** The pictures as ffmpeg reads them: raw ones follow each other, files are packets. */
async function* frame(
  pictures: AsyncIterable<Buffer>,
  first: Pictures,
  fps = DEFAULT_FPS,
): AsyncGenerator<Buffer> {
  if (first.kind === 'raw') return yield* pictures;
  yield packetHeader(first, fps);
  for await (const picture of pictures) yield* packetOf(picture);
}

function assertComplete(end: FfmpegEnd, encoded: number, total: number): void {
  if (end.returncode !== 0) throw toVideoError(end);
  if (encoded !== total)
    throw toVideoError(end, `the video has ${encoded} pictures for ${total} frames`);
}
