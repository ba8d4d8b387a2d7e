import { rm, stat } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { Readable } from 'node:stream';
import { ffmpegArguments, type VideoSettings } from './ffmpeg-arguments.ts';
import { findFfmpeg } from './find-ffmpeg.ts';
import { FrameCheck } from './frame-check.ts';
import { FrameNormalizer } from './normalize-frames.ts';
import { ProgressReader } from './progress.ts';
import type { Frame, FrameFailure } from './read-frames.ts';
import { type FfmpegEnd, runFfmpeg } from './run-ffmpeg.ts';
import { toVideoError } from './video-error.ts';

export interface EncodeVideoOptions extends VideoSettings {
  /** In order. Of any kinds, all of one size; what cannot be used is listed in `bad_frames`. */
  frames: AsyncIterable<Frame | FrameFailure>;
  /** How many frames there are. */
  total: number;
  /** Overwritten; removed again when the video fails. */
  outputPath: string;
  /** 0…1, never falling. */
  onProgress?(share: number): void;
  signal?: AbortSignal;
  /** Default: findFfmpeg(). */
  ffmpeg?: string;
}

export interface EncodedVideo {
  bytes: number;
  frames: number;
  width: number;
  height: number;
}

/**
 * Makes a video here from frames that are read elsewhere, one frame in memory at a time. Settles
 * when ffmpeg is gone. Throws WindlassError `bad_frames`; `video_failed` with `extra.returncode` and
 * `extra.stderr`; what reading the frames throws; the signal's reason. If the process dies, ffmpeg
 * and the decoder end with their input, and `outputPath` holds what nobody may promote.
 */
export async function encodeVideo(options: EncodeVideoOptions): Promise<EncodedVideo> {
  const { frames, total, outputPath, onProgress, signal, ...settings } = options;
  const source = new FrameNormalizer(frames, new FrameCheck({ mixed: true }));
  const progress = new ProgressReader();
  const close = () => source.close();
  signal?.addEventListener('abort', close, { once: true });
  try {
    signal?.throwIfAborted();
    const pictures = await source.open();
    const ffmpeg = options.ffmpeg ?? (await findFfmpeg());
    const threads = settings.threads ?? Math.min(8, availableParallelism());
    const { size, ...args } = ffmpegArguments(pictures, { ...settings, threads });
    const end = await runFfmpeg({
      ffmpeg,
      arguments: args,
      input: Readable.from(source.read(), { objectMode: false }),
      outputPath,
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

function assertComplete(end: FfmpegEnd, made: number, total: number): void {
  if (end.returncode !== 0) throw toVideoError(end);
  if (made !== total) throw toVideoError(end, `${made} pictures were made of ${total} frames`);
}
