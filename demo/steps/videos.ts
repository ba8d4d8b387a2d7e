import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import sharp from 'sharp';
import { expect } from '../console.ts';
import type { DemoContext } from '../context.ts';
import { killWorker } from '../kill-worker.ts';
import { countFrames } from '../probe-video.ts';

const FRAMES = 60;
const WIDTH = 640;
const HEIGHT = 360;

/** Draws frames on the host's disk, like a simulation. */
export async function drawFrames({ host, out }: DemoContext): Promise<string[]> {
  const folder = join(host.home, 'frames');
  await mkdir(folder, { recursive: true });
  const progress = out.progress('frames');
  const paths: string[] = [];
  for (let n = 0; n < FRAMES; n++) {
    const path = join(folder, `${String(n).padStart(3, '0')}.png`);
    await writeFile(
      path,
      await sharp(Buffer.from(drawing(n)))
        .png()
        .toBuffer(),
    );
    paths.push(path);
    progress((n + 1) / FRAMES);
  }
  return paths;
}

function drawing(n: number): string {
  const turn = (n / FRAMES) * 2 * Math.PI;
  const dots = Array.from({ length: 12 }, (_, i) => {
    const angle = turn + (i * Math.PI) / 6;
    return `<circle cx="${WIDTH / 2 + 120 * Math.cos(angle)}" cy="${HEIGHT / 2 + 120 * Math.sin(angle)}" r="${6 + i}" fill="hsl(${i * 30},70%,60%)"/>`;
  });
  return `<svg width="${WIDTH}" height="${HEIGHT}"><rect width="100%" height="100%" fill="#14213d"/>${dots.join('')}</svg>`;
}

interface Status {
  ok: boolean;
  ready: boolean;
  message: string;
  progress: number;
}

export interface Video {
  /** Its path under /api/remotes. */
  path: string;
  bytes: Buffer;
}

interface VideoOptions {
  session: string;
  frames: string[];
  type: 'video/mp4' | 'video/webm';
  /** Kills the worker once while it encodes. */
  kill?: boolean;
}

/** Makes a video, polls its status, downloads and checks it. */
export async function makeVideo(demo: DemoContext, options: VideoOptions): Promise<Video> {
  const { client, out, directory } = demo;
  const { session, frames, type } = options;
  const { vsid } = await client.post<{ vsid: string }>(`/api/remotes/${session}/videos`, {
    'content-type': type,
    images: frames,
  });
  const path = `/api/remotes/${session}/videos/${vsid}`;
  const killing = options.kill ? killWorker(demo, vsid) : undefined;
  killing?.catch(() => {});
  await untilReady(demo, path);
  expect((await killing) !== false, 'no worker was killed');
  const whole = await client.getBytes(path);
  expect(whole.status === 200 && whole.type === type, `it came as ${whole.status} ${whole.type}`);
  const { bytes } = whole;
  const part = await client.getBytes(path, { Range: 'bytes=1000-1999' });
  expect(
    part.status === 206 && part.bytes.equals(bytes.subarray(1_000, 2_000)),
    'the range is not the same bytes',
  );
  const file = join(directory, `demo.${type.slice(6)}`);
  await writeFile(file, bytes);
  const counted = await countFrames(file);
  expect(counted === FRAMES, `${counted} frames were decoded`);
  out.note(`${bytes.length} bytes, bytes 1000-1999 by range, ${counted} frames decoded`);
  return { path, bytes };
}

async function untilReady({ client, out }: DemoContext, path: string): Promise<void> {
  const progress = out.progress('encoding');
  for (;;) {
    const status = await client.get<Status>(`${path}/status`);
    expect(status.ok, status.message);
    progress(status.progress);
    if (status.ready) return;
    await delay(150);
  }
}
