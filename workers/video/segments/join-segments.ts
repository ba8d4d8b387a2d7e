import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { runConfined } from '../../sandbox/run-confined.ts';
import { writeScratch } from '../../sandbox/scratch-dir.ts';
import { containerArguments, type VideoType } from '../ffmpeg-arguments.ts';
import { DEMUXERS } from '../stills.ts';
import { toVideoError } from '../video-error.ts';
import type { VideoLimits } from '../video-limits.ts';

interface JoinOptions {
  ffmpeg: string;
  directory: string;
  /** The segments in their order: names of files in the directory. */
  segments: readonly { name: string; start: number; until: number }[];
  /** The name of the video there. */
  name: string;
  type: VideoType;
  fps: number;
  limits: VideoLimits;
  signal: AbortSignal;
}

/**
 * Joins encoded segments, which begin with key frames, without decoding. Each begins at the time of its first frame,
 * whatever duration the file before it states.
 */
export async function joinSegments(options: JoinOptions): Promise<void> {
  const { ffmpeg, directory, segments, name, type, fps, limits, signal } = options;
  // Differences of rounded times, so that no error adds up.
  const microseconds = (frame: number) => Math.round((frame / fps) * 1e6);
  const lines = segments.flatMap(segment => [
    `file ${segment.name}`,
    `duration ${((microseconds(segment.until) - microseconds(segment.start)) / 1e6).toFixed(6)}`,
  ]);
  const list = Readable.from([`ffconcat version 1.0\n${lines.join('\n')}\n`]);
  await writeScratch(join(directory, 'segments.txt'), list, { signal, keepFree: limits.keepFree });
  const words = [
    ...['-hide_banner', '-loglevel', 'error', '-nostdin', '-y', '-protocol_whitelist', 'file'],
    // Other workers made some: a segment that is a playlist opens no other files.
    ...['-format_whitelist', `concat,${DEMUXERS[type]}`, '-f', 'concat', '-i', 'segments.txt'],
    ...['-map', '0:v:0', '-c', 'copy', ...containerArguments(type), name],
  ];
  const { code, stderr } = await runConfined([ffmpeg, ...words], {
    directory,
    ...limits,
    processors: availableParallelism(),
    signal,
  });
  if (code !== 0) throw toVideoError({ returncode: code, stderr });
}
