import { WindlassError } from '../../shared/errors/errors.ts';
import { diskFull } from '../sandbox/scratch-dir.ts';
import type { FfmpegEnd } from './run-ffmpeg.ts';

/** SIGXFSZ and SIGXCPU, as exit statuses. */
const LIMITS: Record<number, string> = {
  153: 'the video is larger than LIMIT_OUTPUT_BYTES or than the disk has space',
  152: 'ffmpeg used all its processor time: LIMIT_VIDEO_SECONDS for each processor',
};

/** SIGKILL, as an exit status. */
const KILLED = 137;

const NO_SPACE = /No space left on device|Disk quota exceeded/;

/**
 * `insufficient_storage` if the worker's disk is full; else `video_failed` with this detail or ffmpeg's last line.
 * `extra` has the exit code and the end of stderr.
 */
export function toVideoError({ returncode, stderr }: FfmpegEnd, detail?: string): WindlassError {
  if (NO_SPACE.test(stderr)) return diskFull(stderr);
  if (returncode === KILLED)
    return new WindlassError('video_failed', {
      detail: 'ffmpeg was killed, as for lack of memory.',
      hint: 'Ask for a smaller width, or start it again.',
      extra: { returncode, stderr },
    });
  const lastLine = stderr.trimEnd().split('\n').at(-1);
  return new WindlassError('video_failed', {
    detail: `${detail || LIMITS[returncode] || lastLine || `ffmpeg ended with ${returncode}`}.`,
    hint: 'Check whether a frame is broken or cut short.',
    extra: { returncode, stderr },
  });
}

/** Like toVideoError(), for a host's script: a full disk there is `remote_disk_full`. */
export function toHostVideoError(end: FfmpegEnd): WindlassError {
  if (!NO_SPACE.test(end.stderr)) return toVideoError(end);
  return new WindlassError('remote_disk_full', {
    detail: 'there is no space for the video.',
    hint: 'Make room in the home directory on the host.',
    extra: { returncode: end.returncode, stderr: end.stderr },
  });
}

/** Whether a video failed because of its frames, as far as known: not of a limit, a full disk or a connection. */
export function isForFrames(error: unknown): error is WindlassError {
  if (error instanceof WindlassError && error.code === 'bad_frames') return true;
  const returncode = returncodeOf(error);
  return returncode !== undefined && returncode !== KILLED && !(returncode in LIMITS);
}

/** Whether ffmpeg was killed, which says nothing of the frames nor of an ffmpeg elsewhere. */
export const wasKilled = (error: unknown): boolean => returncodeOf(error) === KILLED;

function returncodeOf(error: unknown): number | undefined {
  if (!(error instanceof WindlassError && error.code === 'video_failed')) return undefined;
  const { returncode } = error.extra;
  return returncode === undefined ? undefined : Number(returncode);
}

/** A video has no effect but itself, so that it need not be known how its run ended. */
export const lostOnHost = (cause: Error): WindlassError =>
  new WindlassError('video_failed', {
    detail: 'the host lost ffmpeg: all that runs there was killed, or the host was started anew.',
    hint: 'Leave "encode" out, so that a worker can encode it, or start it again.',
    cause,
  });
