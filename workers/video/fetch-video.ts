import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { WindlassError } from '../../shared/errors/errors.ts';
import type { SpriteTiles } from '../../shared/jobs/payloads/video.ts';
import type { JobContext } from '../context.ts';
import { quoteWord } from '../host-agent/shell-quote.ts';
import { withScratch, writeScratch } from '../sandbox/scratch-dir.ts';
import { withSession } from '../ssh/reconnect.ts';
import type { Size } from './frame-info.ts';
import { dropErrors } from './frame-stream.ts';
import { HOST_STILLS, HOST_VIDEO } from './host-encode-script.ts';
import type { HostOutput } from './host-output.ts';
import { limitInspection } from './limit-inspection.ts';
import { planTiles } from './plan-stills.ts';
import { type ScratchVideo, type StoredVideo, storeVideo } from './store-video.ts';
import { fileTooLarge, videoLimits } from './video-limits.ts';

type VideoContext = JobContext<'video'>;

interface EncodedVideo {
  object: string;
  output: HostOutput;
  frames: number;
  size: Size;
  /** Whether the frames have differing pixel formats. */
  varies: boolean;
}

/** The bytes of the video, then those of its poster and its sprite if it has them. */
type Sizes = [number, ...([number, number] | [])];

/** Copies the files from the run's directory and stores them. */
export function fetchVideo(
  context: VideoContext,
  { object, output, frames, size, varies }: EncodedVideo,
): Promise<StoredVideo> {
  const { payload, worker } = context;
  context.progress(0.96, 'storing the video: fetching it from the host');
  // With differing pixel formats ffmpeg has lost pictures of the stills.
  const stills = varies ? undefined : output.stills;
  const names = [HOST_VIDEO, ...(stills ? [HOST_STILLS.poster, HOST_STILLS.sprite] : [])];
  const sizes: Sizes = [output.size, ...(stills ?? ([] as const))];
  const { fileBytes } = videoLimits(worker.config);
  // The script makes no files of this size, so its ffmpeg was replaced.
  if (sizes.some(bytes => bytes > fileBytes)) throw fileTooLarge(fileBytes);
  const files = names.map(name => `${output.directory}/${name}`);
  const bytes = sizes.reduce((sum, part) => sum + part, 0);
  const { tiles } = planTiles(size, { frames, fps: payload.fps });
  return withScratch('video', async directory => {
    const path = join(directory, 'video');
    await limitInspection(context, limited => copyFromHost(limited, path, { files, bytes }));
    return storeVideo(context, { ...toScratchVideo(path, sizes, tiles), object, frames, size });
  });
}

/** Writes these files of the host, of `bytes` together, one after the other; anew after a lost connection. */
function copyFromHost(
  context: VideoContext,
  path: string,
  { files, bytes }: { files: string[]; bytes: number },
): Promise<void> {
  const { signal, worker } = context;
  const { keepFree } = videoLimits(worker.config);
  return withSession(context, async session => {
    await rm(path, { force: true });
    const channel = await session.exec(`exec cat ${files.map(quoteWord).join(' ')}`, signal);
    dropErrors(channel);
    channel.stdin.end();
    try {
      await writeScratch(path, channel.stdout, { signal, keepFree, size: bytes });
    } finally {
      channel.destroy();
    }
    const { size: arrived } = await stat(path);
    if (arrived === bytes) return;
    throw new WindlassError('remote_connection_failed', {
      detail: `Only ${arrived} of the video's ${bytes} bytes arrived.`,
    });
  });
}

/** The video and its stills, as parts of the one file that was copied. */
function toScratchVideo(
  path: string,
  [video, poster, sprite]: Sizes,
  tiles: SpriteTiles,
): Pick<ScratchVideo, 'video' | 'stills'> {
  if (poster === undefined || sprite === undefined) return { video: { path } };
  const partOf = (start: number, bytes: number) => ({ path, part: { start, bytes } });
  return {
    video: partOf(0, video),
    stills: {
      poster: partOf(video, poster),
      sprite: partOf(video + poster, sprite),
      tiles,
    },
  };
}
