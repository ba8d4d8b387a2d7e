import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { WindlassError } from '../../shared/errors/errors.ts';
import { findBundledFfmpeg } from '../../shared/process/bundled-ffmpeg.ts';
import type { Logger } from '../../shared/process/log.ts';
import { chooseEncoder, type EncoderQuestion, nameEncoders } from './ffmpeg-arguments.ts';

const runFile = promisify(execFile);

/**
 * This worker's ffmpeg: the one on PATH if it has both encoders, else the bundled one. Throws WindlassError
 * `video_failed` without either.
 */
export function findFfmpeg(): Promise<string> {
  found ??= lookForFfmpeg().catch(error => {
    // It may be installed while this worker runs.
    found = undefined;
    throw error;
  });
  return found;
}

let found: Promise<string> | undefined;

/**
 * How this release makes pictures of frames. Raise it with every change of what a video of the same frames looks like: of the
 * arguments and filters of ffmpeg (ffmpeg-arguments.ts, filter-graph.ts), and of how frames are decoded, normalized and
 * labelled (decode-child.ts, normalize-frames.ts, pixel-format.ts, frame-labels.ts).
 */
export const PICTURES_VERSION = 1;

/**
 * A digest of ffmpeg's own version output and of how pictures are made: only segments of the same join. Workers of two
 * releases run side by side during an upgrade.
 */
export async function findFfmpegVersion(pictures = PICTURES_VERSION): Promise<string> {
  const env = { PATH: process.env.PATH };
  const { stdout } = await runFile(await findFfmpeg(), ['-version'], { env });
  return createHash('sha256').update(`${pictures} ${stdout}`).digest('hex');
}

async function lookForFfmpeg(): Promise<string> {
  if (await canEncodeBoth('ffmpeg')) return 'ffmpeg';
  const bundled = await findBundledFfmpeg();
  if (bundled && (await canEncodeBoth(bundled))) return bundled;
  throw new WindlassError('video_failed', {
    detail: 'no worker has an ffmpeg with libx264 and libvpx-vp9.',
    hint: 'Install ffmpeg where the video workers run.',
  });
}

/** The encoder for a video. Throws `video_failed` if this ffmpeg has none. */
export async function findEncoder(ffmpeg: string, video: EncoderQuestion): Promise<string> {
  const found = chooseEncoder(await listEncoders(ffmpeg).catch(() => []), video);
  if (found) return found;
  throw new WindlassError('video_failed', {
    detail: `the worker's ffmpeg has no ${nameEncoders(video)}.`,
    hint: 'Ask for another codec, or install an ffmpeg that has it where the video workers run.',
  });
}

/** Logs at the worker's start which ffmpeg makes videos, if that is not the machine's own. */
export async function reportFfmpeg(log: Logger): Promise<void> {
  const ffmpeg = await findFfmpeg().catch(() => undefined);
  if (!ffmpeg) log.warn('there is no ffmpeg: videos fail; install ffmpeg');
  else if (ffmpeg !== 'ffmpeg')
    log.warn(
      { ffmpeg },
      'there is no ffmpeg with libx264 and libvpx-vp9 on PATH: videos are made with the bundled one, which is of 2018; install ffmpeg',
    );
}

async function canEncodeBoth(ffmpeg: string): Promise<boolean> {
  const encoders = await listEncoders(ffmpeg).catch(() => []);
  const types = ['video/mp4', 'video/webm'] as const;
  return types.every(type => chooseEncoder(encoders, { type }));
}

async function listEncoders(ffmpeg: string): Promise<string[]> {
  const { stdout } = await runFile(ffmpeg, ['-hide_banner', '-loglevel', 'error', '-encoders'], {
    env: { PATH: process.env.PATH },
  });
  return [...stdout.matchAll(/^ V\S+ (\S+)/gm)].map(match => match[1] ?? '');
}
