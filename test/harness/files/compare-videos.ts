import { execFileSync } from 'node:child_process';

const MAX_BYTES = 2 ** 30;

function ffmpeg(args: string[]): string {
  const words = ['-hide_banner', '-nostdin', ...args];
  return execFileSync('/bin/sh', ['-c', 'exec ffmpeg "$@" 2>&1', 'sh', ...words], {
    encoding: 'utf8',
    maxBuffer: MAX_BYTES,
  });
}

/** A digest of each picture of a video, in their order. */
export function digestPictures(file: string, from: string[] = []): string[] {
  const lines = ffmpeg([
    '-v',
    'error',
    ...from,
    '-i',
    file,
    '-map',
    '0:v:0',
    '-f',
    'framemd5',
    '-',
  ]);
  return [...lines.matchAll(/^0,.*,\s*([0-9a-f]{32})$/gm)].map(match => match[1] ?? '');
}

/** The numbers of the frames at which a player can begin. */
export function listKeyFrames(file: string): number[] {
  const flags = execFileSync(
    'ffprobe',
    ['-v', 'error', '-select_streams', 'v:0', '-show_entries', 'packet=flags', '-of', 'csv', file],
    { encoding: 'utf8', maxBuffer: MAX_BYTES },
  );
  // In the order of decoding, in which every key frame of a closed group comes first.
  const packets = flags.trim().split('\n');
  return packets.flatMap((line, n) => (line.includes('K') ? [n] : []));
}

/** What a video is in its container, and when each of its frames is shown (ms). */
export function describeStream(file: string): { stream: string; times: number[] } {
  const probe = (entries: string) =>
    execFileSync(
      'ffprobe',
      ['-v', 'error', '-select_streams', 'v:0', '-show_entries', entries, '-of', 'csv', file],
      { encoding: 'utf8', maxBuffer: MAX_BYTES },
    ).trim();
  const stream = probe(
    'stream=codec_name,profile,width,height,pix_fmt,color_range,color_space,color_transfer,color_primaries,time_base,r_frame_rate,has_b_frames',
  );
  const times = probe('packet=pts_time')
    .split('\n')
    .map(line => Math.round(1_000 * Number(line.split(',')[1])));
  return { stream, times: times.sort((a, b) => a - b) };
}

/** How near the pictures of a video are to these, whose names are numbered from 0 (dB). */
export function psnrOf(file: string, { pattern, fps }: { pattern: string; fps: number }): number {
  const log = ffmpeg([
    ...['-v', 'info', '-r', String(fps), '-i', file, '-framerate', String(fps)],
    ...['-start_number', '0', '-i', pattern],
    ...['-lavfi', '[1:v]format=yuv420p[source];[0:v][source]psnr', '-f', 'null', '-'],
  ]);
  return Number(/average:([\d.]+)/.exec(log)?.[1]);
}
