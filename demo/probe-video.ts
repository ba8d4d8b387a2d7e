import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { findFfmpeg } from '../workers/video/find-ffmpeg.ts';

interface VideoInfo {
  frames: number;
  width: number;
  height: number;
}

/** Decodes every frame of a file's first video stream with ffmpeg; throws if one is broken or there is none. */
export async function probeVideo(file: string): Promise<VideoInfo> {
  const input = [
    '-hide_banner',
    '-loglevel',
    'error',
    '-nostdin',
    '-xerror',
    '-protocol_whitelist',
    'file',
  ];
  // framecrc: a line `#dimensions 0: 640x480`, then one line for each frame.
  const child = spawn(
    await findFfmpeg(),
    [...input, '-i', `file:${file}`, '-map', '0:v:0', '-f', 'framecrc', '-'],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  const ended = new Promise<number | null>((resolve, reject) =>
    child.once('error', reject).once('close', resolve),
  );
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (piece: string) => {
    stderr = (stderr + piece).slice(-8192);
  });
  const info = { frames: 0, width: 0, height: 0 };
  const readInfo = async () => {
    for await (const line of createInterface(child.stdout)) {
      const [, width, height] = /^#dimensions 0: (\d+)x(\d+)/.exec(line) ?? [];
      if (width && height) Object.assign(info, { width: Number(width), height: Number(height) });
      else if (/^\d/.test(line)) info.frames++;
    }
  };
  const [code] = await Promise.all([ended, readInfo()]);
  if (code !== 0)
    throw new Error(`ffmpeg cannot read ${file}: ${stderr.trim() || `it ended with ${code}`}`);
  return info;
}

/** The number of frames in a video file. */
export async function countFrames(file: string): Promise<number> {
  return (await probeVideo(file)).frames;
}
